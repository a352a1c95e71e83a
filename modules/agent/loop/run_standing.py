"""How the last run of a trajectory stands: its status, what it waits for, and the error that it failed with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ....engine import RunFailure, RunStatus, WaitRequest
from ....traces import Trace
from ..events import AgentEnd, AgentEvent, AgentStart, EventFormatError
from ..events.base import AgentStopReason
from ..trajectory.conversation import conversation
from .errors import error_text, error_type

_BY_STOP: dict[AgentStopReason, RunStatus] = {
    "finished": RunStatus.completed,
    "max_steps_reached": RunStatus.stopped,
    "stalled": RunStatus.stopped,
    "cancelled": RunStatus.cancelled,
    "error": RunStatus.failed,
}
_ANSWERED = (None, RunStatus.completed, RunStatus.stopped)
"""The statuses of runs whose last words may be an answer; of a trajectory made by hand there is none."""


@dataclass(frozen=True)
class RunStanding:
    """How a run stands, as its trace says."""

    status: RunStatus
    waiting: tuple[WaitRequest, ...] = field(default=())
    error: RunFailure | None = None

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """The standing of a trace's run, whether it has ended or not."""
        return cls.from_dict({**trace.end, "status": trace.status, "waiting": trace.waiting})

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        doc: dict[str, Any] = {"status": str(self.status)}
        if self.waiting:
            doc["waiting"] = [request.to_dict() for request in self.waiting]
        if self.error is not None:
            doc["error"] = {**self.error.to_dict(), "issues": list(self.error.issues)}
        return doc

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> Self:
        """The standing of a JSON form; raises EventFormatError where it is none."""
        try:
            error = doc.get("error")
            requests = tuple(WaitRequest.from_dict(request) for request in doc.get("waiting") or ())
            return cls(RunStatus(doc["status"]), requests, RunFailure.from_dict(error) if error else None)
        except (TypeError, ValueError, KeyError, AttributeError) as wrong:
            raise EventFormatError("Trajectory", f"its last_run does not say how a run stands: {wrong}") from None


def standing_of(value: Any) -> RunStanding | None:
    """The standing itself, or that of a JSON form; see `RunStanding.from_dict`."""
    return value if value is None or isinstance(value, RunStanding) else RunStanding.from_dict(value)


def last_run(events: Sequence[AgentEvent]) -> Sequence[AgentEvent]:
    """The events of the last run."""
    start = next((i for i in range(len(events) - 1, -1, -1) if isinstance(events[i], AgentStart)), 0)
    return events[start:]


def end_of(events: Sequence[AgentEvent]) -> AgentEnd | None:
    """The end of the last run, if it has one."""
    for event in reversed(events):
        if isinstance(event, AgentEnd):
            return event
        if isinstance(event, AgentStart):
            return None
    return None


def told_status(events: Sequence[AgentEvent]) -> RunStatus | None:
    """The status of the last run as its events tell it, None where they do not."""
    end = end_of(events)
    return None if end is None else _BY_STOP[end.stop_reason]


def told_error(events: Sequence[AgentEvent]) -> RunFailure | None:
    """What the last run failed for, as its end tells it: a model's error or a hook's Fail, which raise nothing."""
    end = end_of(events)
    if end is None or end.error is None:
        return None
    return RunFailure("Fail" if isinstance(end.error, str) else error_type(end.error), error_text(end.error))


def may_have_answered(status: RunStatus | None) -> bool:
    """Whether the last words of a run of this status may be an answer."""
    return status in _ANSWERED


def answer_of(events: Sequence[AgentEvent], status: RunStatus | None) -> str | None:
    """The text that the model ended the last run with, None where it did not: see `Trajectory.answer`."""
    if status not in _ANSWERED:
        return None
    last = next(reversed(conversation(last_run(events))), None)
    if last is None or last.role != "assistant" or last.tool_calls:
        return None
    return last.content or None
