"""Reactions: what a hook, or a tool, asks the Agent to do next. Returned or raised, they are data with a JSON form."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from ...engine import emit
from .chat.json_forms import message_to_dict, messages_from, plain_object
from .chat.messages import Message
from .loop.errors import error_from_dict, error_text, error_to_dict, error_type
from .tools.errors import Stop, ToolSignal

DENIED = "[POLICY DENIED]"
"""What the result of a call that a hook has denied begins with."""


@dataclass(eq=False)
class Reaction(ToolSignal):
    """The base of all reactions. A hook may return one or raise it; so may a tool, whose `catch` does not keep it back.

    A subclass of one's own is a dataclass of JSON values, and comes back from a trace as what it was. It has no
    effect on the run, and gives way to every other reaction.
    """

    precedence: ClassVar[int] = 4
    _known: ClassVar[dict[str, type["Reaction"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Reaction._known[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """The reaction as JSON: its class as `type`, and what it holds; `reaction_from_dict` takes it."""
        held = {f.name: getattr(self, f.name) for f in fields(self) if not _is_unset(f, getattr(self, f.name))}
        return {"type": type(self).__name__, **{name: _plain(value) for name, value in held.items()}}

    def to_add(self) -> list[Message]:
        """The messages that the conversation gets by it, behind those of the turn."""
        return []

    def log_metrics(self, *, step: int) -> None:
        """Writes to the trace that the reaction took place; with no run in context, does nothing."""

    def text(self) -> str:
        """What stands as the result of the call of a tool that raised it."""
        return str(self) or type(self).__name__

    def signal(self) -> dict[str, Any]:
        """The reaction as part of what came of a tool."""
        return {"reaction": self.to_dict()}

    def __str__(self) -> str:
        return ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reaction) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        return reaction_from_dict, (self.to_dict(),)


@dataclass(eq=False)
class Continue(Reaction):
    """Go on: with these messages behind the turn's, then `feedback` as a user's message."""

    messages: list[Message] = field(default_factory=list)
    feedback: str | None = None

    precedence: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.messages = messages_from(self.messages)
        _check_text("Continue", "feedback", self.feedback, optional=True)

    def to_add(self) -> list[Message]:
        """Its messages, then its feedback."""
        return [*self.messages, *([Message("user", self.feedback)] if self.feedback else [])]

    def log_metrics(self, *, step: int) -> None:
        """Counts the continuation, and says how many messages it added."""
        emit("metric", metric="continues", value=1, mode="count", step=step)
        emit("metric", metric="messages", value=len(self.messages), step=step)

    def __str__(self) -> str:
        return self.feedback or ""


@dataclass(eq=False)
class Retry(Reaction):
    """Ask the model again; `messages`, where given, stand for the whole conversation from here on."""

    messages: list[Message] | None = None

    precedence: ClassVar[int] = 2

    def __post_init__(self) -> None:
        self.messages = None if self.messages is None else messages_from(self.messages)

    def log_metrics(self, *, step: int) -> None:
        """Counts the retry, and says of how many messages the new conversation is, if there is one."""
        emit("metric", metric="retries", value=1, mode="count", step=step)
        if self.messages is not None:
            emit("metric", metric="messages", value=len(self.messages), step=step)

    def __str__(self) -> str:
        return "" if self.messages is None else f"with {len(self.messages)} messages"


@dataclass(eq=False)
class RetryWithFeedback(Reaction):
    """Ask the model again, having told it `feedback`.

    It is a user's message, or, with `tool_call_id`, the result of that call, marked as denied.
    """

    feedback: str
    tool_call_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    precedence: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _check_text("RetryWithFeedback", "feedback", self.feedback)
        _check_text("RetryWithFeedback", "tool_call_id", self.tool_call_id, optional=True)
        self.metadata = plain_object(self.metadata)

    def to_add(self) -> list[Message]:
        """The feedback as a message."""
        if self.tool_call_id is None:
            return [Message("user", self.feedback, metadata=self.metadata)]
        told = f"{DENIED} {self.feedback}"
        return [Message("tool", told, tool_call_id=self.tool_call_id, metadata=self.metadata)]

    def log_metrics(self, *, step: int) -> None:
        """Counts the retry."""
        emit("metric", metric="retries", value=1, mode="count", step=step)

    def __str__(self) -> str:
        return self.feedback


@dataclass(eq=False)
class Fail(Reaction):
    """End the run as failed; `error` is the error, or what to say of it."""

    error: Exception | str

    stop = True
    precedence: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.error, Exception | str):
            raise TypeError(f"Fail takes an exception or a text, got {type(self.error).__name__}")
        if isinstance(self.error, str):
            self.error = error_text(self.error)

    def __str__(self) -> str:
        return error_text(self.error)

    def text(self) -> str:
        """The error, as the result of the call."""
        told = self.error if isinstance(self.error, str) else f"{error_type(self.error)}: {error_text(self.error)}"
        return Stop(told).text()


@dataclass(eq=False)
class Finish(Reaction):
    """End the run as finished; `reason` says why."""

    reason: str | None = None

    stop = True
    precedence: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _check_text("Finish", "reason", self.reason, optional=True)

    def __str__(self) -> str:
        return self.reason or ""

    def text(self) -> str:
        """The reason, as the result of the call."""
        return Stop(str(self)).text()


def winner(reactions: Sequence[Reaction | None]) -> int | None:
    """The place of the reaction that counts: Finish, Fail, Retry or RetryWithFeedback, Continue, any other.

    Among equals it is the first. None where there is no reaction.
    """
    ranked = [(reaction.precedence, i) for i, reaction in enumerate(reactions) if reaction is not None]
    return min(ranked)[1] if ranked else None


def reaction_to_dict(reaction: Reaction) -> dict[str, Any]:
    """The reaction as JSON, by type and content."""
    return reaction.to_dict()


def reaction_from_dict(document: Mapping[str, Any]) -> Reaction:
    """The reaction of a document that `to_dict` gave.

    Raises ValueError for what is none, and for a class that is not imported.
    """
    values = dict(document)
    name = values.pop("type", None)
    cls = Reaction if name == "Reaction" else Reaction._known.get(str(name))
    if cls is None:
        raise ValueError(f"there is no reaction {name!r}; import the module that defines it, if it is your own")
    if isinstance(values.get("error"), Mapping):
        values["error"] = error_from_dict(values["error"])
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"this is no {name}: {error}") from error


def _is_unset(f: Field[Any], value: Any) -> bool:
    """Whether a field has nothing to say: None, or an empty dict, where that is its default."""
    return (value is None and f.default is None) or (value == {} and f.default_factory is dict)


def _plain(value: Any) -> Any:
    if isinstance(value, Exception):
        return error_to_dict(value)
    if isinstance(value, Message):
        return message_to_dict(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _check_text(cls: str, name: str, value: Any, *, optional: bool = False) -> None:
    if not (isinstance(value, str) or (optional and value is None)):
        raise TypeError(f"{cls}.{name} is a text, got {type(value).__name__}")
