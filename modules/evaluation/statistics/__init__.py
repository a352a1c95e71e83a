"""Statistics of evaluations: intervals, comparisons of two evaluations, agreement, and repeats.

All functions are pure, in plain Python without numpy and scipy. A *task* is the unit: repeats of one task are not
independent, so intervals of a mean resample tasks. Each function cites its formula's source; the tests compare all of
them with scipy, statsmodels and scikit-learn.
"""
