"""A replay on the full screen, through the extra `tui`.

`cursor` holds the place in the run and its moves, without a terminal. `app` combines the parts: `timeline` (the
overview and the list of steps), `state_tree`, and the lines of the step, which the plain replay shows, too.
"""
