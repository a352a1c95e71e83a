"""Child runs: of a branch's candidates, or of a hook or tool.

Each child has its own trace beside its parent's, and spends from its parent's budget. `child_run` starts or resumes a
child, and forwards its requests to the parent; `called_run` and `candidate_run` say what differs between the two kinds.
`registry` holds all children of one run. `run_child` starts a child and waits for it; `start_child` starts one that
works in the `background`. `exploration` runs the candidates for a strategy, each in its own environment
(`environments`). A child's id depends only on its place in the parent, so that a resumed parent finds its children
again (`child_id`).
"""
