"""Confidence intervals of proportions, and of the difference of two."""

import math
from statistics import NormalDist
from typing import NamedTuple

from ....traces.errors import UsageError


class Interval(NamedTuple):
    """A confidence interval: its two ends."""

    low: float
    high: float


def wilson(successes: float, trials: int, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a proportion.

    `successes` may be a mean times `trials`. Without trials, the interval is (0, 1). Wilson 1927, JASA 22(158),
    doi:10.1080/01621459.1927.10502953.
    """
    _check_counts(successes, trials)
    z = normal_quantile(level)
    if trials == 0:
        return Interval(0.0, 1.0)
    p, z2 = successes / trials, z * z
    center = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = z / (1 + z2 / trials) * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials * trials))
    low = 0.0 if successes == 0 else max(0.0, center - half)
    return Interval(low, 1.0 if successes == trials else min(1.0, center + half))


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Return the exact interval of a proportion.

    Without trials, the interval is (0, 1). Clopper and Pearson 1934, Biometrika 26(4), doi:10.1093/biomet/26.4.404.
    """
    _check_counts(successes, trials)
    _check_level(level)
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else _beta_quantile(tail, successes, trials - successes + 1)
    high = 1.0 if successes == trials else 1 - _beta_quantile(tail, trials - successes, successes + 1)
    return Interval(low, high)


def newcombe_difference(
    successes: int, trials: int, other_successes: int, other_trials: int, level: float = 0.95
) -> Interval:
    """Return the interval of the difference of two independent proportions.

    The same tasks run twice are pairs, not independent. Newcombe 1998, Statistics in Medicine 17(8), method 10. Raises
    UsageError without trials on a side, as the difference has no value then.
    """
    if trials == 0 or other_trials == 0:
        raise UsageError(
            f"a difference of proportions needs at least one trial on each side, got {trials} and {other_trials}"
        )
    one, other = wilson(successes, trials, level), wilson(other_successes, other_trials, level)
    p, q = successes / trials, other_successes / other_trials
    low = p - q - math.hypot(p - one.low, other.high - q)
    return Interval(low, p - q + math.hypot(one.high - p, q - other.low))


def normal_quantile(level: float) -> float:
    """Return the number of standard deviations of a two-sided interval."""
    _check_level(level)
    return NormalDist().inv_cdf(0.5 + level / 2)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"the level of an interval must be between 0 and 1, such as 0.95, got {level!r}")


def _check_counts(successes: float, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise UsageError(f"successes must be between 0 and the number of trials, got {successes} of {trials}")


def _beta_quantile(tail: float, a: float, b: float) -> float:
    """Return the x with I_x(a, b) = tail.

    The search is a bisection to the last bit.
    """
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        low, high = (middle, high) if _incomplete_beta(middle, a, b) < tail else (low, middle)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only below this point
        return 1 - _incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _beta_fraction(x, a, b))


_TINY = 1e-300
"""Replaces a zero by which Lentz's method would divide."""


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction 1 + d1/(1 + d2/(1 + …)).

    It is computed by the modified Lentz method.
    """
    value, up, down = 1.0, 1.0, 0.0
    step = 1
    while True:
        m, odd = divmod(step, 2)
        if odd:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        down = 1 / (1 + part * down or _TINY)
        up = 1 + part / up or _TINY
        value *= up * down
        if abs(up * down - 1) < 1e-15:
            return value
        step += 1
