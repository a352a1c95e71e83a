"""The questions about more than one run.

They are the list, families, sets of runs, evaluations, and a comparison of two. All others, in the room above, are
about one run.
"""
