"""Replay: hooks run again, with outcomes from a trace.

`verify` folds a trace again and reports each `Divergence`. Its host, `recorded_host`, takes the place of a live run and
serves outcomes in their recorded order. `reuse` lets a fork take the outcomes of its source while it makes the same
requests; `recorded_step` looks up these outcomes, and `child_ends` says which child runs had ended. `unknown_effects`
turns calls without an outcome into requests that a person answers.
"""
