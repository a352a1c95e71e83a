"""The start of a run: one frozen `RunPlan`.

`plan` has a constructor for a fresh run, a resumed run, a fork, and a child. `resume` and `fork` prepare two of these
plans from traces. `usage` adds up the usage in a trace. `header` makes the first record, `run_ids` the id and the seed.
`trace_place` says where the trace is kept.
"""
