"""One figure: the measured value, its goal, and its spread."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run.

    `steps` and `long` are two lengths of a run, and `repeats` is how often each time is measured. A branch has
    `children`, from a state of `messages` messages. Every `hands`-th hand is played. `peer` is the path of an
    interpreter with dreadnode; without it, nothing is compared with dreadnode.
    """

    steps: int = 2_000
    long: int = 10_000
    runs: int = 1_000
    run_steps: int = 20
    children: int = 1_000
    messages: int = 2_000
    hands: int = 1
    repeats: int = 7
    peer: str | None = None


QUICK = Sizes(steps=400, long=1_000, runs=100, run_steps=10, children=100, messages=400, hands=40, repeats=3)
"""Sizes for a first look; the goals are meant for the full sizes."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the report; `goal` is None without a goal."""

    key: str
    title: str
    measured: float
    goal: float | None = None
    better: Literal["below", "above"] = "below"
    unit: str = "x"
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        if self.goal is None:
            return None
        return self.measured <= self.goal if self.better == "below" else self.measured >= self.goal

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "figure": self.key,
            "title": self.title,
            "measured": self.measured,
            "goal": self.goal,
            "better": self.better,
            "unit": self.unit,
            "met": self.met,
            "details": self.details,
        }


def spread(values: Sequence[float], scale: float = 1.0) -> dict[str, float]:
    """Return the least, the median and the largest of some times."""
    return {name: round(of(values) * scale, 3) for name, of in (("min", min), ("median", median), ("max", max))}


def paired(times: Sequence[float], bases: Sequence[float]) -> list[float]:
    """Return each time over the base that was measured next to it.

    The machine's speed may halve between two repeats, and neighbours see the same speed. So the median of these ratios
    says more than the least time over the least base, which may come from two different moments.
    """
    return [time / base for time, base in zip(times, bases, strict=True)]


def trace_file(folder: Path) -> Path:
    """Return the one trace in a folder."""
    (found,) = folder.glob("*.trace.jsonl")
    return found
