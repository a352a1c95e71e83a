"""Calls a strategy's score function.

Each call has its own frame, so that its effects replay in any order.
"""

import inspect
from collections.abc import Callable, Sequence
from math import isfinite
from numbers import Real
from typing import Any

from ...errors import DecisionError
from ..concurrency.tasks import several
from ..current_frame import reset_frame, set_frame
from ..effects.call import leave
from ..effects.context import Frame
from ..run.live_run import LiveRun
from ..strategies.protocol import CandidateScore, Score


async def ask_scores(
    run: LiveRun,
    branch: str,
    score: Score | CandidateScore,
    asked: Sequence[tuple[str, tuple[Any, ...]]],
    take: Callable[[str, float], None],
    at_once: int,
) -> None:
    """Score each (place, args) of a branch by `score(*args)`.

    `take` receives each place and its number. Up to `at_once` async scores run at a time; sync scores run one after
    another. Raises DecisionError for a score that is not a finite number.
    """

    async def ask(place: str, args: tuple[Any, ...]) -> None:
        frame = Frame(run, run.step, "branch", None, f"{branch}|{place}|".encode())
        token = set_frame(frame)
        try:
            value: Any = score(*args)
            if inspect.isawaitable(value):
                value = await value
        finally:
            reset_frame(token)
            leave(frame.span)
        take(place, _finite(value, score, place))

    if _is_async(score):
        await several([lambda place=place, args=args: ask(place, args) for place, args in asked], at_once)  # type: ignore[misc]
    else:
        for place, args in asked:
            await ask(place, args)


def _is_async(score: Score | CandidateScore) -> bool:
    return inspect.iscoroutinefunction(score) or inspect.iscoroutinefunction(getattr(score, "__call__", None))  # noqa: B004


def _finite(value: Any, score: Score | CandidateScore, place: str) -> float:
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if isfinite(number):
            return number
    name = getattr(score, "__name__", type(score).__name__)
    what = f"candidate {place}" if place else "the run's own state"
    raise DecisionError(f"the score of {what} must be a finite number, {name} gave {value!r:.80}")
