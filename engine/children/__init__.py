"""Runs inside runs: candidates of a branch, and the runs that a hook or tool starts.

Each is a run with a trace of its own, beside its parent's, and draws on its parent's budget. `exploration` grows the
candidates that a strategy asks for, in `environments` of their own; `run_child` and `start_child` begin runs that calls
wait for, or that go on beside the steps (`background`). `parent` says how a child is found again, after a crash too.
"""
