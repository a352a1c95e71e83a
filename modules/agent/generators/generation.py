"""A model's answer: one assistant message with its usage, or its pieces."""

from dataclasses import dataclass
from typing import Any, Self

from ....engine import StateModel
from ..chat.messages import Message
from ..chat.usage import Usage


class Generation(StateModel):
    """One answer of a model.

    `stop_reason` is why it ended, in the provider's words (`stop`, `length`, `tool_calls`, ...). `usage` is None where
    the provider gave none. `extra` holds whatever else it said: JSON values, which go into the message's metadata.
    """

    message: Message
    stop_reason: str | None = None
    usage: Usage | None = None
    extra: dict[str, Any] = {}

    @property
    def cost(self) -> float | None:
        """The cost in US dollars; None if the price is unknown."""
        return self.usage.cost_usd if self.usage is not None else None

    @classmethod
    def from_text(cls, text: str, stop_reason: str | None = "stop", usage: Usage | None = None) -> Self:
        """Return an answer that is only text."""
        return cls(message=Message("assistant", text), stop_reason=stop_reason, usage=usage)

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a message's call number `index`.

    Pieces of `arguments` add up; `id` and `name` come once.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer; pieces of one kind add up to the generation's."""

    text: str = ""
    reasoning: str = ""
    call: CallDelta | None = None
