"""What a run is given back of a child run, as the outcome of its call carries it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from ..effects.json_values import json_result
from ..effects.usage import RunUsage
from ..endings import RunStatus, StopReason
from ..result import RunError

if TYPE_CHECKING:
    from ...traces import Trace
    from ..result import RunResult

Reads = Callable[[Any], Any] | None
"""What makes a JSON value of a child's last state."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child run ended, or stands: the same when it is replayed.

    `status` is None while it is at work. `value` is what the `value` of `run_child` made of its last state. `hash` is
    that of the last record of its trace, None while it can go on; `waiting` are the questions that it waits with. Its
    trace is `trace.relative(run_id)` of the run that it belongs to.
    """

    run_id: str
    status: RunStatus | None
    stop_reason: StopReason | None = None
    final_result: str | None = None
    steps: int = 0
    usage: RunUsage = field(default_factory=RunUsage)
    error: str | None = None
    value: Any = None
    hash: str | None = None
    waiting: tuple[str | None, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether it goes on no more."""
        return self.hash is not None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return {**own, "usage": self.usage.to_dict(), "waiting": list(self.waiting)}

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> "ChildResult":
        """The result of a JSON form."""
        reason = doc["stop_reason"]
        read = {
            "status": None if doc["status"] is None else RunStatus(doc["status"]),
            "stop_reason": None if reason is None else StopReason(reason),
            "usage": RunUsage(**doc["usage"]),
            "waiting": tuple(doc["waiting"]),
        }
        return cls(**{**doc, **read})

    @classmethod
    def of_trace(cls, trace: "Trace", used: RunUsage) -> "ChildResult":
        """What a run's trace says, which has used so much."""
        end, ended = trace.end, trace.ending.record is not None and trace.status != RunStatus.waiting
        error = RunError.from_dict(end["error"]) if end.get("error") else None
        return cls(
            trace.run_id,
            RunStatus(trace.status),
            None if trace.stop_reason is None else StopReason(trace.stop_reason),
            end.get("final_result"),
            trace.step_count,
            used,
            None if error is None else str(error),
            hash=trace.records[-1].hash if ended else None,
            waiting=tuple(request.get("prompt") for request in trace.waiting),
        )

    @classmethod
    def of(cls, result: "RunResult", read: Reads = None) -> "ChildResult":
        """What a run's own result says, and what `read` makes of its state."""
        over = result.status is not RunStatus.waiting
        value = None
        if read is not None and over and result.state is not None:
            value = orjson.loads(orjson.dumps(json_result(read(result.state), None, "the value")))
        return cls(
            result.run_id,
            result.status,
            result.stop_reason,
            result.final_result,
            result.steps,
            result.usage,
            None if result.error is None else str(result.error),
            value,
            result.trace.records[-1].hash if over else None,
            tuple(request.prompt for request in result.waiting),
        )
