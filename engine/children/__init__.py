"""Child runs.

These are the runs of a branch's candidates, and the runs that a hook or tool starts.

Each child has its own trace beside its parent's, and spends from its parent's budget. `child_run` starts or resumes a
child, and asks its questions on its behalf; `called_run` and `candidate_run` say what differs between the two kinds.
`registry` holds all children of one run. `run_child` starts a child and waits for it; `start_child` starts one that
works in the `background`. `exploration` runs the candidates that a strategy asks for, each in its own environment
(`environments`). A child's id depends only on its place in the parent, so that a resumed parent finds its children
again (`parent`).
"""
