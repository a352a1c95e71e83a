"""A replay on the full screen, through the extra `tui`.

`cursor` is the place in the run and how one moves it, without a terminal. `app` puts the parts together: `timeline`
(the overview and the list of steps), `state_tree`, and the step's lines, which are those of the plain replay.
"""
