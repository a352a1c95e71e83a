"""The start of a run: one frozen `RunPlan`.

It is the same for each way in which a run comes to be.

`plan` has its four constructors: for a fresh run, a resumed one, a fork, and a child. `resume` and `fork` prepare two
of them from traces, and `usage` adds up what a trace says was used. `header` makes the first record, `run_ids` the id
and the seed, and `trace_place` says where the trace is kept.
"""
