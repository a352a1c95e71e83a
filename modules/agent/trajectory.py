"""The Trajectory: what one agent has done, as the events of its runs in a row."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID, uuid4, uuid5

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, PrivateAttr

from ...traces import Trace
from .conversation import context, conversation
from .documents import usage_from
from .events import (
    AgentEvent,
    AgentStep,
    GenerationStep,
    MetricSeries,
    event_from_dict,
    event_to_dict,
    steps_among,
)
from .messages import Message
from .projecting import events_of
from .tables import rows_of, summary_of
from .usage import Usage

_NOTHING = usage_from(None)
E = TypeVar("E", bound=AgentEvent)

_NAMESPACE = UUID("7c2b1f0a-58d4-5e0f-8a7b-2f6b9c1d3e55")


def _events(given: Any) -> list[AgentEvent]:
    return [event if isinstance(event, AgentEvent) else event_from_dict(event) for event in given]


class Trajectory(BaseModel):
    """The steps of an agent in their order, with the start and the end of each run; several turns follow one another.

    What else a stream tells (that a tool has started, that a model has answered) says nothing that the steps do not
    say; it is left out, so that a trajectory does not weigh twice what the conversation does.

    A trajectory is a projection of the traces of its runs, and its own record once it is saved:
    `from_dict(t.to_dict())` equals `t` and can be continued. `trace` leads to the trace of the last run, where there
    is one.

    Attributes:
        session_id: its own id.
        agent_id: the agent's.
        system_prompt: the instructions that the model was given.
        events: what happened.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    session_id: UUID = Field(default_factory=uuid4)
    agent_id: UUID | None = None
    system_prompt: str | None = None
    events: Annotated[
        list[AgentEvent],
        PlainValidator(_events),
        PlainSerializer(lambda events: [event_to_dict(event) for event in events], when_used="json"),
    ] = Field(default_factory=list)

    _trace: Trace | None = PrivateAttr(default=None)

    @property
    def trace(self) -> Trace | None:
        """The trace of the last run; None where the trajectory was made by hand, or loaded."""
        return self._trace

    @trace.setter
    def trace(self, trace: Trace | None) -> None:
        self._trace = trace

    @property
    def steps(self) -> list[AgentStep]:
        """The events that are steps, each generation once: as a GenerationStep, and not as its GenerationEnd too."""
        return steps_among(self.events)

    @property
    def incomplete(self) -> str | None:
        """Why the last answer is not a whole one, though nothing failed: "length", "refusal", ...; see `Incomplete`."""
        last = next((event for event in reversed(self.events) if isinstance(event, GenerationStep)), None)
        return None if last is None else last.incomplete

    @property
    def messages(self) -> list[Message]:
        """The conversation without the system's message, as a valid chat: each call is followed by its result."""
        return conversation(self.events)

    @property
    def context(self) -> list[Message]:
        """What a model is sent of it next: as `messages`, but with a summary for what was summarised."""
        return context(self.events)

    @property
    def usage(self) -> Usage:
        """What all steps have used together; its cost is None where a price is not known."""
        return Usage.total(step.usage for step in self.steps if step.usage is not _NOTHING)

    @property
    def metrics(self) -> dict[str, MetricSeries]:
        """The numbers that hooks and scorers have attached to events, by name."""
        found: dict[str, MetricSeries] = {}
        for event in self.events:
            for name, series in event.metrics.items():
                found.setdefault(name, MetricSeries()).points.extend(series.points)
        return found

    def add_event(self, event: AgentEvent) -> None:
        """Adds an event or step."""
        self.events.append(event)

    def get_events_by_type(self, event_type: type[E]) -> list[E]:
        """The events of this class, and of those that derive from it."""
        return [event for event in self.events if isinstance(event, event_type)]

    def get_summary(self) -> dict[str, Any]:
        """What it came to, as JSON: how it ended, how many steps, generations and calls it took, what it used."""
        return summary_of(self.events, self.usage, str(self.session_id))

    def trajectory_to_rows(self) -> list[dict[str, Any]]:
        """A row for each message, with the step that brought it, as for a table."""
        return rows_of(self.events, str(self.session_id))

    def to_dict(self) -> dict[str, Any]:
        """The trajectory as JSON; `from_dict` gives an equal one back."""
        return {
            "session_id": str(self.session_id),
            "agent_id": None if self.agent_id is None else str(self.agent_id),
            "system_prompt": self.system_prompt,
            "events": [event_to_dict(event) for event in self.events],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Trajectory":
        """The trajectory that `to_dict` gave; what a document lacks is as in a new one.

        Raises EventFormatError for an event that does not fit its class.
        """
        known = {name: data[name] for name in cls.model_fields if data.get(name) is not None}
        return cls(**known)

    @classmethod
    def of(cls, trace: Trace | str | Path) -> "Trajectory":
        """The trajectory that a run's trace tells of, whether it has ended or not."""
        trace = trace if isinstance(trace, Trace) else Trace.load(trace)
        state = trace.first_state or {}
        agent = state.get("agent") or {}
        made = cls(
            session_id=agent.get("session_id") or uuid5(_NAMESPACE, trace.run_id),
            agent_id=agent.get("agent_id"),
            system_prompt=(state.get("system") or {}).get("body"),
        )
        made.events = events_of(trace)
        made.trace = trace
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectory):
            return NotImplemented
        return self is other or self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "Trajectory":
        """A trajectory of its own, which leads to the same trace; generators stand as the names of their models."""
        copy = self.from_dict(self.to_dict())
        copy.trace = self.trace
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is saved: without the trace."""
        return type(self).from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        steps, last = len(self.steps), type(self.events[-1]).__name__ if self.events else None
        return f"Trajectory(session_id={str(self.session_id)!r}, events={len(self.events)}, steps={steps}, last={last})"

    __str__ = __repr__


if TYPE_CHECKING:
    from .converters import load_trajectory_jsonl as load_trajectory_jsonl
    from .converters import trajectory_from_openai_format as trajectory_from_openai_format
    from .converters import trajectory_to_jsonl_record as trajectory_to_jsonl_record
    from .converters import trajectory_to_openai_format as trajectory_to_openai_format
    from .converters import trajectory_to_rows as trajectory_to_rows
    from .converters import trajectory_to_turns as trajectory_to_turns
    from .datasets_export import trajectories_to_hf_dataset as trajectories_to_hf_dataset
else:

    def __getattr__(name: str) -> Any:
        """The converters, which need this module, so that they are looked up when asked for."""
        if name.startswith(("trajectory_to_", "trajectory_from_", "load_trajectory_")):
            return getattr(import_module(".converters", __package__), name)
        if name == "trajectories_to_hf_dataset":
            return getattr(import_module(".datasets_export", __package__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
