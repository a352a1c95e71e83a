"""Statistics of evaluations: intervals, comparisons of two evaluations, agreement, and repeats.

All functions are pure, in plain Python without numpy and scipy. A *task* is the unit: repeats of one task are not
independent, so intervals of a mean resample tasks. Each function cites its formula's source; the tests compare all of
them with scipy, statsmodels and scikit-learn.
"""

from .agreement import cohens_kappa
from .comparison import holm, mcnemar_exact, paired_permutation
from .intervals import Interval, bootstrap_interval, mean_of, wilson
from .repeats import mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k

__all__ = [
    "Interval",
    "bootstrap_interval",
    "cohens_kappa",
    "holm",
    "mcnemar_exact",
    "mean_of",
    "mean_pass_at_k",
    "mean_pass_hat_k",
    "paired_permutation",
    "pass_at_k",
    "pass_hat_k",
    "wilson",
]
