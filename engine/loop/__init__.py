"""The state machine, without the world: what a module decides, and the loop that asks for it.

`loop` is a generator. It yields what it wants done (check, decide, choose, act, wait, commit) and is sent what came of
it; `reduce` is the only hook that it calls itself. Live runs, resumed ones, verification and tests are this one loop
with different suppliers. `decision` has what is decided and observed, `stop_criteria` when a run ends.
"""
