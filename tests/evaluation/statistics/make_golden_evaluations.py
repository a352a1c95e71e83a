"""Write golden_evaluations.jsonl: what scipy, statsmodels and scikit-learn find for the drawn evaluations.

Run by hand, with `tests/helpers` on PYTHONPATH, where the three are installed. The first line names their versions.
"""
# mypy: ignore-errors

import json
import math
import warnings
from random import Random

import numpy as np
import scipy
import sklearn
import statsmodels
from drawn_evaluations import CASES, TABLE, drawn
from scipy.stats import bootstrap, hypergeom, permutation_test
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint


class Ours(np.random.Generator):
    """A generator whose indices are those that `refold` draws."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))
        self.random_ = Random(0)

    def integers(self, low, high=None, size=None, **_):
        n = high - low if high is not None else low
        return np.array([int(self.random_.random() * n) for _ in range(math.prod(size))]).reshape(size)


def estimate(groups):
    means = np.array([np.mean(each) for each in groups])
    if set(means) <= {0.0, 1.0} or (np.ptp(means) < 1e-12 and set(np.concatenate(groups)) <= {0.0, 1.0}):
        return [means.mean(), *proportion_confint(means.sum(), len(means), method="wilson")]
    if np.ptp(means) < 1e-12:
        return [means.mean(), None, None]
    found = bootstrap((means,), np.mean, n_resamples=2_000, method="BCa", rng=Ours()).confidence_interval
    return [means.mean(), *found]


def tested(before, after):
    one, other = (np.array([np.mean(each) for each in groups]) for groups in (before, after))
    if set(one) | set(other) <= {0.0, 1.0}:
        return float(mcnemar([[0, sum(one > other)], [sum(other > one), 0]], exact=True).pvalue)
    if np.array_equal(one, other):
        return 1.0
    statistic = lambda a, b: np.mean(a) - np.mean(b)  # noqa: E731
    return float(permutation_test((one, other), statistic, permutation_type="samples", n_resamples=np.inf).pvalue)


def found(number):
    before, after = drawn(number)
    verdicts, numbers = ([[getattr(t, n) for t in v] for v in (before, after)] for n in ("verdicts", "numbers"))
    verdicts = [[np.array(each, float) for each in v] for v in verdicts]
    runs = len(before[0].verdicts)
    passed = [int(each.sum()) for each in verdicts[0]]
    p = tested(*verdicts), tested(*numbers), tested([1 - n for n in map(np.array, numbers[0])], numbers[1])
    flat = [np.concatenate(v).astype(int) for v in verdicts]
    return {
        "passed": estimate(verdicts[0]),
        "number": estimate([np.array(each) for each in numbers[0]]),
        "groups": {g: estimate([v for v, t in zip(verdicts[0], before, strict=True) if t.group == g]) for g in "ab"},
        "pass_at": [np.mean([1 - hypergeom.pmf(0, runs, m, k) for m in passed]) for k in range(1, runs + 1)],
        "pass_hat": [np.mean([hypergeom.pmf(k, runs, m, k) for m in passed]) for k in range(1, runs + 1)],
        "p": p[0],
        "holm": list(multipletests(p[1:], method="holm")[1]),
        "kappa": float(cohen_kappa_score(*flat)),
    }


def short(value):
    if isinstance(value, dict):
        return {name: short(each) for name, each in value.items()}
    if isinstance(value, list):
        return [short(each) for each in value]
    return None if value is None or math.isnan(value) else float(f"{value:.12g}")


def main():
    warnings.simplefilter("ignore")  # of NaN, which the table keeps as null
    versions = {each.__name__: each.__version__ for each in (scipy, statsmodels, sklearn)}
    lines = [versions, *(short(found(number)) for number in range(CASES))]
    TABLE.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


main()
