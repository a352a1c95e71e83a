"""A conversation as the steps that stop conditions are shown, made once for each message."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from .calls import ToolCall
from .events import AgentStep, GenerationStep, ToolStep
from .messages import Message

_RUNS = 64


class StepsOf:
    """The steps of one conversation: an answer with what was said before it, and each result, is a step of its own."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.steps: list[AgentStep] = []
        self._waiting: list[Message] = []
        self._calls: dict[str, ToolCall] = {}
        self._number = 0
        self._seen = 0
        self._last: Message | None = None

    def continues(self, messages: Sequence[Message]) -> bool:
        """Whether this conversation begins with what was seen, the very same messages."""
        return self._seen <= len(messages) and (self._seen == 0 or messages[self._seen - 1] is self._last)

    def extend(self, messages: Sequence[Message]) -> list[AgentStep]:
        """The steps of the conversation up to here."""
        for i in range(self._seen, len(messages)):
            self._add(messages[i])
        self._seen = len(messages)
        self._last = messages[-1] if messages else None
        return self.steps

    def _add(self, message: Message) -> None:
        if message.role == "tool":
            id_ = message.tool_call_id or ""
            call = self._calls.get(id_) or ToolCall.of(id_, "unknown")
            self.steps.append(ToolStep(**self.facts, tool_call=call, step=self._number, messages=[message]))
        elif message.role == "assistant":
            self._number += 1
            self._calls = {call.id: call for call in message.tool_calls or ()}
            said = [*self._waiting, message]
            self.steps.append(GenerationStep(**self.facts, step=self._number, messages=said))
            self._waiting = []
        else:
            self._waiting.append(message)


class StepsByRun:
    """Keeps the steps of the runs that were looked at last, so that each look costs what was added since the last."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, StepsOf] = OrderedDict()

    def of(self, run_id: str, messages: Sequence[Message], facts: Mapping[str, Any]) -> list[AgentStep]:
        """The steps of a run's conversation."""
        known = self._runs.pop(run_id, None)
        if known is None or not known.continues(messages):
            known = StepsOf(facts)
        self._runs[run_id] = known
        while len(self._runs) > _RUNS:
            self._runs.popitem(last=False)
        return known.extend(messages)
