"""Ready-made functions for `Agent(context=...)`."""

from collections.abc import Callable, Sequence
from typing import Any

from ....traces.errors import UsageError
from .messages import Message
from .view import cleared, length

ContextFunction = Callable[[Sequence[Message], Any], Sequence[Message]]
CLEARED = "[Old result cleared]"


def window(n: int) -> ContextFunction:
    """Send the goal and the newest `n` messages.

        Agent(name="coder", model="openai/gpt-5", context=window(60))

    More messages are sent where a call would be separated from its results. After a summary, its message takes the
    goal's place.
    """
    if n < 1:
        raise UsageError(f"window(n) must have at least 1 message, got {n!r}.")

    def newest(messages: Sequence[Message], state: Any) -> Sequence[Message]:
        start = max(0, len(messages) - n)
        while start and messages[start].role == "tool":
            start -= 1
        goal = state.messages[state.turns_before]
        return [*[m for m in messages[:start] if m is goal], *messages[start:]]

    return newest


def clear_tool_results(keep: int = 3, over: int = 0, *, text: str = CLEARED) -> ContextFunction:
    """Send `text` in place of old results of tools.

        Agent(name="coder", model="openai/gpt-5", context=clear_tool_results(keep=3, over=2_000))

    The newest `keep` results are sent whole, and so are results of up to `over` characters.
    """
    if keep < 0 or over < 0:
        raise UsageError(f"clear_tool_results: keep and over must be at least 0, got {keep!r} and {over!r}.")

    def shortened(messages: Sequence[Message], state: Any) -> Sequence[Message]:
        results = [i for i, message in enumerate(messages) if message.role == "tool"]
        found = list(messages)
        for i in results[: len(results) - keep]:
            if length(found[i]) > over:
                found[i] = cleared(found[i], text)
        return found

    return shortened
