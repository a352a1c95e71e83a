"""What a run gives back."""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from ..tasks import TaskResult, TaskValidationIssue
from ..traces import Record, Trace
from .effects.usage import RunUsage
from .endings import RunStatus, StopReason
from .errors import RunNotCompletedError, message_of


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """A question that a run waits for: `kind` is "unknown_effect" where a call's fate must be told.

    `schema` is a JSON Schema of the answer, `deadline` seconds since the epoch or None.
    """

    id: str
    prompt: str | None = None
    schema: dict[str, Any] | None = None
    deadline: float | None = None
    kind: str = "wait"
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as a wait record carries it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, doc: dict[str, Any]) -> "WaitRequest":
        """The request of a JSON form."""
        return cls(**{name: doc[name] for name in cls.__slots__ if name in doc})


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: the class of the exception, its message, its traceback as text, and where it was raised."""

    type: str
    message: str
    traceback: str = ""
    step: int | None = None
    phase: str | None = None
    issues: tuple[dict[str, Any], ...] = ()
    """What is wrong with the task or its environment: each with `code`, `message`, `field` and `details`."""

    def __str__(self) -> str:
        place = f" (step {self.step}, {self.phase})" if self.phase else ""
        return f"{self.type}: {self.message}{place}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as an end record carries it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> "RunError":
        """The error of a JSON form."""
        return cls(**{**doc, "issues": tuple(doc.get("issues", ()))})

    @classmethod
    def of_issues(cls, type_: str, issues: Sequence[TaskValidationIssue], phase: str) -> "RunError":
        """The error of a task that is not as it must be: all its issues at once, each with its code."""
        message = "; ".join(f"{issue.code}: {issue.place}{issue.message}" for issue in issues)
        return cls(type_, message, "", 0, phase, tuple(issue.model_dump(mode="json") for issue in issues))

    @classmethod
    def of(cls, error: BaseException, step: int | None = None, phase: str | None = None) -> "RunError":
        """The error of an exception; a group of one is unwrapped."""
        text = "".join(traceback.format_exception(error)).encode("utf-8", "replace").decode()
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        return cls(type(error).__name__, message_of(error), text, step, phase)


S = TypeVar("S", default=Any)


@dataclass(frozen=True, slots=True)
class RunResult(Generic[S]):
    """How a run ended, and all that can be read of it.

    `state` is None if `init_state` never gave one; `steps` counts committed steps. `waiting` holds the open requests of
    a run that waits. `trace` reads the run back.
    """

    status: RunStatus
    stop_reason: StopReason
    final_result: str | None
    state: S
    steps: int
    usage: RunUsage
    task_result: TaskResult
    trace: Trace
    error: RunError | None = None
    waiting: list[WaitRequest] = field(default_factory=list)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.trace.run_id

    def raise_for_status(self) -> Self:
        """Return the result of a run that has completed.

        Raises:
            RunNotCompletedError: the run failed, stopped, waits or was cancelled; the message says why.
        """
        if self.status is not RunStatus.completed:
            raise RunNotCompletedError(self.told(), self)
        return self

    def told(self) -> str:
        """How the run ended, in a line."""
        why = str(self.error) if self.error is not None else str(self.stop_reason)
        if self.error is None and self.waiting:
            why = "; ".join(str(request.prompt or request.kind) for request in self.waiting)
        where = f"; trace {self.trace.path}" if self.trace.path is not None else ""
        return f"run {self.run_id} {self.status}: {why}{where}"

    @property
    def live_from(self) -> dict[str, Any] | None:
        """Where a fork with `reuse_effects` went on by itself; None where it did not, or took nothing from another run.

        `step`, `phase`, `name` and `args` are those of the first request that was not as recorded; `why` says so.
        """
        return live_from(self.trace)


def live_from(trace: Trace) -> dict[str, Any] | None:
    """See RunResult.live_from."""
    data = next((event["data"] for event in told_live(trace)), None)
    return None if data is None else {**data, "args": trace.value(data["args"])}


def told_live(trace: Trace) -> Iterator[Record]:
    """The events that say so; in the last of them `reused` is true where all that follows is live, too."""
    if "reuse_effects" in (trace.header.get("parent") or {}):
        for record in trace.records:
            if record.kind == "event" and record["name"] == "live_from" and "reused" in record:
                yield record
