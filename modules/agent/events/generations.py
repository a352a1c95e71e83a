"""Events of asking a model, from the request to the answer, and what is done when it fails or grows too long."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from .base import AgentEvent, AgentStatus, AgentStep, Incomplete, last_text, shown_call, shown_usage, told
from .fields import Document, Documents, Error, Messages, OptionalGenerator, OptionalMessage, ShortText
from .lifecycle import shown_error
from .masking import masked, masked_arguments
from .model_name import model_of


class GenerationStart(AgentEvent):
    """A model is about to be asked.

    Attributes:
        generator: what is asked.
        step: the number of the agent's step.
        messages: all that it is sent.
    """

    generator: OptionalGenerator = None
    step: int = 0
    messages: Messages = Field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Return the model and the step."""
        return {"model": model_of(self.generator), "step": self.step}


class GenerationContent(AgentEvent):
    """A model has answered; its calls of tools are still to come. For those who show an answer at once.

    Attributes:
        step: the number of the agent's step.
        content: the text.
        tool_calls: the calls it asks for, each with id, name and arguments.
        extra: what else the model has said, such as `reasoning_content`.
    """

    step: int = 0
    content: str | None = None
    tool_calls: Documents = Field(default_factory=list)
    extra: Document = Field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return the answer, its calls with their arguments masked."""
        return {"step": self.step, "content": self.content, "tool_calls": self._calls(), "extra": self.extra}

    def _calls(self) -> list[dict[str, Any]]:
        return [masked_call(call) for call in self.tool_calls]


class GenerationDelta(AgentEvent):
    """A piece of an answer, as the model says it. It is live only, and no part of the record.

    Pieces of one kind add up to what GenerationContent then says as a whole. After a GenerationRetry those before it
    are void: the model says its answer anew.

    Attributes:
        step: the number of the agent's step.
        text: more of the text.
        reasoning: more of what the model thinks before it answers.
        tool_call: more of a call: its `index` in the answer, `id` and `name` once, and a piece of `arguments`.
    """

    step: int = 0
    text: str = ""
    reasoning: str = ""
    tool_call: Document = Field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return the piece; of a call only its name.

        In a piece of a call, secrets cannot be recognised.
        """
        shown = {name: self.tool_call[name] for name in ("index", "id", "name") if name in self.tool_call}
        return {"step": self.step, "text": self.text, "reasoning": self.reasoning, "tool_call": shown}


class _OfGeneration(AgentStep):
    """What the end of a generation and its step tell alike."""

    stop_reason: str | None = None
    incomplete: Incomplete | None = None

    def data(self) -> dict[str, Any]:
        """Return the answer and what it used."""
        calls = [call for message in self.messages[-1:] for call in message.tool_calls or ()]
        return {
            "step": self.step,
            "content": last_text(self.messages),
            "tool_calls": [shown_call(call) for call in calls],
            "usage": shown_usage(self.usage),
            "stop_reason": self.stop_reason,
            "model": model_of(self.generator),
            **told(incomplete=self.incomplete),
        }


class GenerationEnd(_OfGeneration):
    """A generation is complete, and the tools that it called have run.

    Its `usage` is that of the GenerationStep that follows, told earlier: what adds up steps leaves this one out.

    Attributes:
        generator: what was asked.
        stop_reason: why the generation stopped, in the provider's words.
        incomplete: why the answer is not a whole one, where it is not.
    """


class GenerationStep(_OfGeneration):
    """A generation as a step: the answer, in the conversation from here on.

    Attributes:
        generator: what was asked.
        stop_reason: why the generation stopped, in the provider's words.
        incomplete: why the answer is not a whole one, where it is not.
        extra: what else the model has said.
        generation_failed: whether there was no answer; then `error` says why.
    """

    status: AgentStatus | None = "running"
    extra: Document = Field(default_factory=dict)
    generation_failed: bool = False

    def data(self) -> dict[str, Any]:
        """Return the answer, what it used and cost, and what else was said."""
        usage = shown_usage(self.usage, cost=True)
        return {**super().data(), "usage": usage, "failed": self.generation_failed, "extra": self.extra}


class GenerationError(AgentEvent):
    """A model gave no answer, or could not be asked.

    Attributes:
        generator: what was asked.
        error: what went wrong.
        step: the number of the agent's step.
        messages: what the model had been sent.
    """

    generator: OptionalGenerator = None
    error: Error
    step: int = 0
    messages: Messages = Field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Return the model, the error and the step."""
        return {"model": model_of(self.generator), **shown_error(self.error), "step": self.step}


class GenerationRetry(AgentEvent):
    """A model will be asked again after a wait, as what went wrong may pass. It costs no step.

    Attributes:
        step: the number of the agent's step.
        attempt: the number of the coming attempt to repair it, from 1.
        max_attempts: how many there are at most.
        wait_seconds: how long the wait is.
        error_type: the class of the error.
        error_message: its text.
    """

    step: int = 0
    attempt: int = 0
    max_attempts: int = 0
    wait_seconds: float = 0.0
    error_type: str = ""
    error_message: ShortText = ""

    def data(self) -> dict[str, Any]:
        """Return the attempt, the wait and the error."""
        names = ("step", "attempt", "max_attempts", "wait_seconds", "error_type", "error_message")
        return {name: getattr(self, name) for name in names}


class CompactionEvent(AgentEvent):
    """The conversation is made shorter: a summary takes the place of its beginning.

    Attributes:
        trigger: why.
        compaction_status: how far it got.
        reason: why it failed or was not done.
        messages_before: how many messages the conversation had, the system's not counted.
        messages_after: how many it has now, the summary among them.
        summary: the message that stands for the first `messages_before - messages_after + 1`.
    """

    trigger: Literal["manual", "threshold", "overflow_recovery"] = "threshold"
    compaction_status: Literal["started", "completed", "skipped", "failed"] = "completed"
    reason: ShortText = None
    messages_before: int | None = None
    messages_after: int | None = None
    summary: OptionalMessage = None

    def data(self) -> dict[str, Any]:
        """Return what was done, and why."""
        names = ("trigger", "compaction_status", "reason", "messages_before", "messages_after")
        return {name: getattr(self, name) for name in names}


def masked_call(call: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a call with its arguments masked."""
    arguments = call.get("arguments")
    if arguments is None:
        return call
    return {**call, "arguments": masked_arguments(arguments) if isinstance(arguments, str) else masked(arguments)}


def steps_among(events: Iterable[AgentEvent]) -> list[AgentStep]:
    """Return the steps among events, each once.

    A GenerationEnd is left out, as the GenerationStep after it says the same.
    """
    return [event for event in events if isinstance(event, AgentStep) and not isinstance(event, GenerationEnd)]
