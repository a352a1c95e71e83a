"""Numbers of any size: means and sums that neither overflow nor vanish.

A scorer may return any finite number, and squares and cubes of numbers such as 1e200 or 1e-170 are no floats.
"""

import math
from collections.abc import Iterable, Sequence

_FAR = 200
"""Exponents of two between which squares, cubes and sums of a million values stay ordinary floats."""


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of numbers, however large."""
    exponent = exponent_of(values)
    return math.ldexp(math.fsum(scaled(values, exponent)) / len(values), exponent)


def exponent_of(values: Iterable[float]) -> int:
    """Return the exponent of two by which the values need scaling.

    It is 0 for values of an ordinary size, which are never changed. Scaling by a power of two is exact.
    """
    exponent = math.frexp(max(map(abs, values), default=0.0))[1]
    return exponent if abs(exponent) > _FAR else 0


def scaled(values: Sequence[float], exponent: int) -> Sequence[float]:
    """Return the values divided by two to this power."""
    return [math.ldexp(each, -exponent) for each in values] if exponent else values
