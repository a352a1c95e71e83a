"""One figure: what was measured, what was to be reached, and how the numbers behind it lay."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run: `steps` and `long` are the two lengths of a run, `repeats` how often each time is taken.

    `children` are those of one branch, from a state of so many `messages`. Every `hands`-th hand is played. `peer` is
    the path of an interpreter that has dreadnode; without one, nothing is measured beside it.
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
"""Sizes for a first look: the goals are meant for the full ones."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the report. `goal` None means that no goal was set: the figure is there to be known."""

    key: str
    title: str
    measured: float
    goal: float | None = None
    better: Literal["below", "above"] = "below"
    unit: str = "x"
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where none was set."""
        if self.goal is None:
            return None
        return self.measured <= self.goal if self.better == "below" else self.measured >= self.goal

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
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
    """The least, the middle and the largest of some times, for a figure's details."""
    return {name: round(of(values) * scale, 3) for name, of in (("min", min), ("median", median), ("max", max))}


def paired(times: Sequence[float], bases: Sequence[float]) -> list[float]:
    """Each time over the base that was taken next to it.

    Neighbours see the same machine, whose speed may halve between one repeat and another: the median of these says more
    than the least time over the least base, which may come from two different moments.
    """
    return [time / base for time, base in zip(times, bases, strict=True)]


def trace_file(folder: Path) -> Path:
    """The one trace in a folder."""
    (found,) = folder.glob("*.trace.jsonl")
    return found
