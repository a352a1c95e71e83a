"""The search space: the possible values of each parameter."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import UsageError


@dataclass(frozen=True, slots=True)
class Float:
    """A number between two bounds.

    With `log` its scale is logarithmic; with `step` it takes only multiples of `step` above `low`.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _check(self.low, self.high, log=self.log)


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number between two, both included."""

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        _check(self.low, self.high, log=self.log)


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of several choices: texts, numbers, truth values or None."""

    choices: Sequence[str | int | float | bool | None]

    def __post_init__(self) -> None:
        if not self.choices:
            raise UsageError("a categorical parameter needs at least one choice")


SearchSpace = Mapping[str, Float | Int | Categorical | Sequence[Any]]
"""A distribution, or a list of choices, for each parameter."""


def distributions(space: SearchSpace) -> dict[str, Any]:
    """Return optuna's distributions of a search space.

    Raises UsageError for an empty space or an unknown kind of value.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not space:
        raise UsageError("a search space needs at least one parameter")
    made: dict[str, Any] = {}
    for name, each in space.items():
        if isinstance(each, Float):
            made[name] = FloatDistribution(each.low, each.high, log=each.log, step=each.step)
        elif isinstance(each, Int):
            made[name] = IntDistribution(each.low, each.high, log=each.log, step=each.step)
        elif isinstance(each, Categorical) or (isinstance(each, Sequence) and not isinstance(each, str)):
            choices = each.choices if isinstance(each, Categorical) else Categorical(each).choices
            made[name] = CategoricalDistribution(list(choices))
        else:
            raise UsageError(f"{name} must be a Float, an Int, a Categorical or a list of choices, got {each!r}")
    return made


def _check(low: float, high: float, *, log: bool) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise UsageError(f"a range must go from low to high, got {low!r} to {high!r}")
    if log and low <= 0:
        raise UsageError(f"a logarithmic range must start above 0, got {low!r}")
