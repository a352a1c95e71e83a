"""The start of a run: one frozen `RunPlan`.

`plan` has a constructor for a fresh run and a child. `resume` makes the plan of a resumed run from its trace, and
`fork` that of a fork. `usage` adds up the usage in a trace.
"""
