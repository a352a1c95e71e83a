"""Scorers: what gives an event numbers, by name."""

import inspect
from collections.abc import Callable
from typing import Any


class Scorer:
    """A function of an event that gives a number (or several, or Metrics), and the name the numbers stand under."""

    def __init__(self, func: Callable[[Any], Any], *, name: str | None = None) -> None:
        if not callable(func):
            raise TypeError(f"a scorer is a function of an event, got {type(func).__name__}")
        self.func = func
        self.name = name or str(getattr(func, "__name__", type(func).__name__))

    async def score(self, event: Any) -> Any:
        """The number for an event."""
        found = self.func(event)
        return await found if inspect.isawaitable(found) else found

    def __repr__(self) -> str:
        return f"Scorer({self.name})"


class _Adapted(Scorer):
    """Something else that has a `name` and a `score`."""

    def __init__(self, scorer: Any) -> None:
        super().__init__(scorer.score, name=str(getattr(scorer, "name", type(scorer).__name__)))


def as_scorer(given: Any) -> Scorer:
    """A scorer from a scorer, a function, or an object with `score(event)`; raises TypeError for anything else."""
    if isinstance(given, Scorer):
        return given
    return _Adapted(given) if callable(getattr(given, "score", None)) else Scorer(given)
