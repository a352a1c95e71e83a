"""Write golden.jsonl: what scipy and statsmodels find for the drawn cases.

Run by hand, with `tests/helpers` on PYTHONPATH, where scipy and statsmodels are installed. Together they are 379 MB,
which is too much for each run of the tests. The first line names their versions.
"""
# mypy: ignore-errors

import json
import math
import warnings
from random import Random

import numpy as np
import scipy
import statsmodels
from drawn_cases import CASES, RESAMPLES, TABLE, Case, case
from scipy.stats import binomtest, bootstrap, hypergeom, permutation_test
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests


class Ours(np.random.Generator):
    """A generator whose indices are those that `refold` draws."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(0))
        self.random_ = Random(seed)

    def integers(self, low, high=None, size=None, **_):
        n = high - low if high is not None else low
        return np.array([int(self.random_.random() * n) for _ in range(math.prod(size))]).reshape(size)


def kappa(one, other, weights):
    labels = sorted({*one, *other})
    table = np.zeros((len(labels), len(labels)))
    for a, b in zip(one, other, strict=True):
        table[labels.index(a), labels.index(b)] += 1
    return float(cohens_kappa(table, wt=weights, return_results=True).kappa)


def found(c: Case):
    n, k, (x, y) = c.trials[0], c.successes[0], c.values
    ends = bootstrap((x,), np.mean, confidence_level=c.level, n_resamples=RESAMPLES, method="BCa", rng=Ours(c.number))
    runs, passed, drawn = c.runs
    b, d = c.only
    return {
        "wilson": list(binomtest(k, n).proportion_ci(c.level, method="wilson")),
        "bootstrap": list(ends.confidence_interval),
        "mcnemar": float(mcnemar([[1, b], [d, 1]], exact=True).pvalue),
        "permutation": float(
            permutation_test(
                (x, y), lambda a, b: np.mean(a) - np.mean(b), permutation_type="samples", n_resamples=np.inf
            ).pvalue
        ),
        "holm": list(multipletests(c.p_values, method="holm")[1]),
        "kappa": kappa(*c.labels, None),
        "linear": kappa(*c.labels, "linear"),
        "quadratic": kappa(*c.labels, "quadratic"),
        "pass_at_k": float(1 - hypergeom.pmf(0, runs, passed, drawn)),
        "pass_hat_k": float(hypergeom.pmf(drawn, runs, passed, drawn)),
    }


def short(value):
    if isinstance(value, list):
        return [short(each) for each in value]
    return None if math.isnan(value) else float(f"{value:.12g}")


def main():
    warnings.simplefilter("ignore")  # of NaN, which the table keeps as null
    versions = {"scipy": scipy.__version__, "statsmodels": statsmodels.__version__}
    lines = [versions, *({name: short(v) for name, v in found(case(i)).items()} for i in range(CASES))]
    TABLE.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


main()
