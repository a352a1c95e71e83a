"""Events of a tool call, from its start to its place in the conversation."""

from typing import Any

from pydantic import Field

from .base import AgentEvent, AgentStatus, AgentStep, shown_call
from .fields import Call, Error, OptionalDocument, ShortText
from .lifecycle import shown_error


class ToolStart(AgentEvent):
    """A tool is about to be called.

    Attributes:
        tool_call: the call.
        policy_decision: what a policy has decided about it.
        redact_telemetry: whether none of its arguments is to be shown; not written down.
    """

    status: AgentStatus | None = "running"
    tool_call: Call
    policy_decision: OptionalDocument = None
    redact_telemetry: bool = Field(default=False, exclude=True)

    def data(self) -> dict[str, Any]:
        """Return the call, masked, and the decision."""
        call = shown_call(self.tool_call, hidden=self.redact_telemetry)
        return {"tool_call": call, "policy_decision": self.policy_decision}


class ToolEnd(AgentEvent):
    """A tool has come to an end, well or not: `error` says what failed in it, and the model was told.

    Attributes:
        tool_call: the call.
        result: what the model is told, as text.
        stop: whether the tool asks for the end of the run.
        output_file: where the whole output is, in the cache folder, if it was too long.
        error: what failed.
        error_type: the class of the error.
        cost_usd: what the call cost, if it says so.
        policy_decision: what a policy has decided about it.
    """

    tool_call: Call
    result: str | None = None
    stop: bool = False
    output_file: str | None = None
    error: ShortText = None
    error_type: str | None = None
    cost_usd: float | None = None
    policy_decision: OptionalDocument = None

    def data(self) -> dict[str, Any]:
        """Return the call without its arguments, and what came of it."""
        names = ("result", "stop", "output_file", "error", "error_type", "cost_usd", "policy_decision")
        call = shown_call(self.tool_call, arguments=False)
        return {"tool_call": call, **{name: getattr(self, name) for name in names}}


class ToolError(AgentEvent):
    """A call failed with an error that nothing caught: there is no such tool, or the tool lets such errors through.

    Attributes:
        tool_call: the call.
        error: what went wrong.
        policy_decision: what a policy has decided about it.
    """

    status: AgentStatus | None = "errored"
    tool_call: Call
    error: Error
    policy_decision: OptionalDocument = None

    def data(self) -> dict[str, Any]:
        """Return the call, masked, and the error."""
        call = shown_call(self.tool_call)
        return {"tool_call": call, **shown_error(self.error), "policy_decision": self.policy_decision}


class ToolStep(AgentStep):
    """A tool call as a step: its result, in the conversation from here on.

    Attributes:
        tool_call: the call.
    """

    status: AgentStatus | None = "running"
    tool_call: Call

    def data(self) -> dict[str, Any]:
        """Return the call, masked, and how it went."""
        error = shown_error(self.error)["error"]
        return {"tool_call": shown_call(self.tool_call), "step": self.step, "stop": self.stop, "error": error}
