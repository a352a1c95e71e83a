"""The questions about more than one run.

They are the list, families, sets of runs, evaluations, and a comparison of two. The room above has those about one run.
"""
