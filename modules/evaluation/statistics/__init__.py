"""Statistics of evaluations: intervals, comparisons of two evaluations, agreement, and repeats.

All functions are pure, in plain Python without numpy and scipy. A *task* is the unit: repeats of one task are not
independent, so intervals of a mean resample tasks, or cluster by them. Each function cites its formula's source; the
tests compare all of them with scipy and statsmodels.
"""

from .agreement import cohens_kappa
from .bootstrap import bootstrap_interval
from .comparison import holm, mcnemar_exact, paired_permutation
from .proportions import Interval, clopper_pearson, newcombe_difference, wilson
from .repeats import clustered_error, mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k
from .scale import mean_of

__all__ = [
    "Interval",
    "bootstrap_interval",
    "clopper_pearson",
    "clustered_error",
    "cohens_kappa",
    "holm",
    "mcnemar_exact",
    "mean_of",
    "mean_pass_at_k",
    "mean_pass_hat_k",
    "newcombe_difference",
    "paired_permutation",
    "pass_at_k",
    "pass_hat_k",
    "wilson",
]
