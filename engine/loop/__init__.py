"""The state machine of a run, without any effects.

It has decisions, observations, and the loop over them.

`loop` is a generator. It yields wants (check, decide, choose, act, wait, commit), and its caller, the supplier, sends
back the result of each; `reduce` is the only hook that the loop calls itself. Live runs, resumed runs, verification and
tests share this one loop, each with a supplier of its own. `decision` has the decisions and observations,
`stop_criteria` the rules for the end of a run.
"""
