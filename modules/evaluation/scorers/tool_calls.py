"""Scorers of tool calls: which tools a run called, and when."""

from collections.abc import Iterator, Sequence
from typing import Any

from ....traces import Step
from .score import Score
from .scorer import RunScorer


def tool_calls(steps: Sequence[Step]) -> Iterator[tuple[int, str]]:
    """Yield the step and name of each tool call, in order.

    An action of a module and a call in an Agent's message are both tool calls.
    """
    for step in steps:
        decision: Any = step.decision or {}
        for action in decision.get("actions") or ():
            yield step.index, str(action.get("name"))


def called_tool(tool: str, *, at_least: int = 1, at_most: int | None = None, name: str | None = None) -> RunScorer:
    """Score 1 if the number of a tool's calls is within bounds."""

    def score(steps: Sequence[Step]) -> Score:
        count = sum(each == tool for _, each in tool_calls(steps))
        passed = count >= at_least and (at_most is None or count <= at_most)
        return Score(float(passed), passed, f"{tool} was called {count} time{'s' * (count != 1)}")

    return RunScorer(score, name=name or f"called {tool}")


def called_before(first: str, then: str | None = None, *, name: str | None = None) -> RunScorer:
    """Score 1 if tool `first` was called before tool `then`.

    The first calls of the two count. Without `then`, `first` must have been called before the answer.
    """

    def score(steps: Sequence[Step]) -> Score:
        calls = list(tool_calls(steps))
        place = next((i for i, (_, each) in enumerate(calls) if each == first), None)
        other = next((i for i, (_, each) in enumerate(calls) if each == then), len(calls)) if then else len(calls)
        passed = place is not None and place < other
        return Score(
            float(passed), passed, "" if passed else f"calls: {', '.join(each for _, each in calls) or 'none'}"
        )

    return RunScorer(score, name=name or f"{first} before {then or 'the answer'}")
