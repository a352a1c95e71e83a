"""Events of a run as a whole: its start and its end, and what holds it up."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from ..loop.errors import error_cause, error_text, error_type
from .base import AgentEvent, AgentStatus, AgentStopReason, Incomplete
from .fields import Document, Error, ErrorOrText


class AgentStart(AgentEvent):
    """A run has begun.

    Attributes:
        inputs: what it was given, such as its `goal`.
        params: how the agent is configured.
    """

    inputs: Document = Field(default_factory=dict)
    params: Document = Field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return inputs and parameters."""
        return {"inputs": self.inputs, "params": self.params}


class AgentEnd(AgentEvent):
    """A run has ended.

    Attributes:
        stop_reason: why.
        error: what went wrong, if that is why; a text where somebody said so in words.
        incomplete: why the last answer is not a whole one, where it is not.
    """

    told_as_none: ClassVar[frozenset[str]] = frozenset({"status"})

    stop_reason: AgentStopReason
    error: ErrorOrText = None
    incomplete: Incomplete | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_status(cls, values: Any) -> Any:
        if isinstance(values, dict) and "status" not in values:
            failed = values.get("stop_reason") == "error" or values.get("error") is not None
            return {**values, "status": "errored" if failed else "finished"}
        return values

    def data(self) -> dict[str, Any]:
        """Return the reason and the error."""
        incomplete = {} if self.incomplete is None else {"incomplete": self.incomplete}
        return {"stop_reason": self.stop_reason, **shown_error(self.error), **incomplete}


class AgentError(AgentEvent):
    """Something went wrong that no step can answer for, and that ends the run.

    Attributes:
        error: what it was.
    """

    error: Error

    def data(self) -> dict[str, Any]:
        """Return the error."""
        return shown_error(self.error)


class AgentStalled(AgentEvent):
    """The model makes no calls, and no stop condition is met."""

    status: AgentStatus | None = "stalled"

    def data(self) -> dict[str, Any]:
        """Return what it means."""
        return {"reason": "the model made no tool calls, and no stop condition was met"}


class UserInputRequired(AgentEvent):
    """A person is asked; the run waits until somebody answers.

    Attributes:
        request_id: the id that the answer is bound to.
        question: what is asked.
        options: the answers to choose from, if there are any.
    """

    request_id: str
    question: str
    options: list[str] | None = None

    def data(self) -> dict[str, Any]:
        """Return the request."""
        return {"request_id": self.request_id, "question": self.question, "options": self.options}


class Heartbeat(AgentEvent):
    """The run goes on, though nothing has been heard of it for a while. It is live only, and no part of the record.

    Attributes:
        message: what is going on.
    """

    message: str = "Processing..."

    def data(self) -> dict[str, Any]:
        """Return the message."""
        return {"message": self.message}


def shown_error(error: Exception | str | None) -> dict[str, Any]:
    """Return an error as it is shown: its text and its class.

    The text has the cause, if there is one.
    """
    if error is None:
        return {"error": None, "error_type": None}
    if isinstance(error, str):
        return {"error": error, "error_type": None}
    cause = error_cause(error)
    text = error_text(error)
    return {"error": f"{text} (caused by {cause})" if cause else text, "error_type": error_type(error)}
