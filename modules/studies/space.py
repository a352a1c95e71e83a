"""The search space: the possible values of each parameter."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...traces.errors import UsageError


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
        _check(self.low, self.high, self.step, log=self.log)


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number between two, both included."""

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for value in (self.low, self.high, self.step):
            if type(value) is not int:
                raise UsageError(f"the ends and the step of an Int must be whole numbers, got {value!r}")
        _check(self.low, self.high, self.step if self.step != 1 else None, log=self.log)


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of several choices: texts, numbers, truth values or None."""

    choices: Sequence[str | int | float | bool | None]

    def __post_init__(self) -> None:
        if not self.choices:
            raise UsageError("a categorical parameter needs at least one choice")
        for each in self.choices:
            if not (each is None or isinstance(each, str | int | float)) or (isinstance(each, float) and each != each):
                raise UsageError(
                    f"a choice must be text, a number, a truth value or None, got {each!r:.80}; name each choice by a "
                    "text, and look the object up in task_factory"
                )


SearchSpace = Mapping[str, Float | Int | Categorical | Sequence[Any]]
"""A distribution, or a list of choices, for each parameter."""


def distributions(space: SearchSpace) -> dict[str, Any]:
    """Return optuna's distributions of a search space.

    Raises UsageError for an empty space, a name that is not text, or an unknown kind of value.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(space, Mapping):
        raise UsageError(f"a search space must be a mapping of names to values, got {type(space).__name__}")
    if not space:
        raise UsageError("a search space needs at least one parameter")
    made: dict[str, Any] = {}
    for name, each in space.items():
        if not isinstance(name, str):
            raise UsageError(f"the name of a parameter must be text, got {name!r:.80}")
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


def search_space_document(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return optuna's distributions of a search space as JSON."""
    from optuna.distributions import distribution_to_json

    return {name: json.loads(distribution_to_json(each))["attributes"] for name, each in space.items()}


def _check(low: float, high: float, step: float | None, *, log: bool) -> None:
    if step is not None and not 0 < step < math.inf:
        raise UsageError(f"a step must be a number above 0, got {step!r}")
    if step is not None and log:
        raise UsageError("a logarithmic range cannot have a step: leave one of the two out")
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise UsageError(f"a range must go from low to high, got {low!r} to {high!r}")
    if log and low <= 0:
        raise UsageError(f"a logarithmic range must start above 0, got {low!r}")
