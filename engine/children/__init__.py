"""Child runs: the runs of a branch's candidates, and the runs that a hook or tool starts.

Each child has its own trace beside its parent's, and spends from its parent's budget. `exploration` runs the candidates
that a strategy asks for (`candidates`), each in its own environment (`environments`). `run_child` starts a child and
waits for it; `start_child` starts a background child (`background`). Both use `child_run`. A child's id depends only on
its place in the parent, so that a resumed parent finds its children again (`parent`).
"""
