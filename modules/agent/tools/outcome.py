"""What came of a tool call, as JSON: what the model is told, and whether the run goes on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ....engine import ActionResult
from ....errors import RefoldError
from ..chat.content import Content, content_part
from ..chat.json_forms import usage_from, usage_to_dict
from ..chat.messages import Message
from ..chat.usage import Usage
from .errors import ErrorModel
from .truncation import cut_middle

USED = "used"
SUBAGENT_COST = "subagent_cost_usd"
_ERROR_SHOWN = 2_000
_ERROR_TOLD = 30_000


@dataclass(frozen=True)
class ToolOutcome:
    """What came of a tool call.

    `content` is what the model is told: a text, or parts. `stop` says whether the run ends after this step, `signal`
    what else a tool has asked of the Agent, as JSON. `metadata` goes into the message: `error` and `error_type` where
    the call failed, `output_file` where the whole output is, `used` what was used in it, and what the tool's own
    message had.
    """

    content: str | list[Content] = ""
    stop: bool = False
    signal: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> str | None:
        """What went wrong, in at most 2,000 characters; None where nothing did."""
        return self.metadata.get("error")

    @property
    def error_type(self) -> str | None:
        """The class of the error."""
        return self.metadata.get("error_type")

    @property
    def output_file(self) -> str | None:
        """Where the whole output is, in the cache folder, if it was too long."""
        return self.metadata.get("output_file")

    @property
    def usage(self) -> Usage | None:
        """What was used in the call: by generations, and what it was charged; None where that was nothing."""
        used = self.metadata.get(USED)
        if used is None:
            return None
        try:
            return usage_from(used) if isinstance(used, Mapping) else None
        except ValueError:  # a tool's own metadata of that name
            return None

    @property
    def cost_usd(self) -> float | None:
        """What the call cost, in US dollars: as a sub-agent's result says, else by its usage; None if not known."""
        told = self.metadata.get(SUBAGENT_COST)
        if isinstance(told, int | float) and not isinstance(told, bool):
            return float(told)
        return None if self.usage is None else self.usage.cost_usd

    def having_used(self, usage: Usage | None) -> "ToolOutcome":
        """The same outcome of a call in which this was used; what the tool's own result says of that goes first."""
        if usage is None or self.usage is not None:
            return self
        return replace(self, metadata={**self.metadata, USED: usage_to_dict(usage)})

    @property
    def text(self) -> str:
        """The text of the content."""
        return self.message("").content

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without what is as it mostly is."""
        content = self.content if isinstance(self.content, str) else [part.to_dict() for part in self.content]
        doc: dict[str, Any] = {"content": content}
        if self.stop:
            doc["stop"] = True
        if self.signal is not None:
            doc["signal"] = dict(self.signal)
        if self.metadata:
            doc["metadata"] = dict(self.metadata)
        return doc

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> "ToolOutcome":
        """The outcome of a JSON form; raises RefoldError where it is none."""
        content = doc.get("content") if isinstance(doc, Mapping) else None
        if not isinstance(content, str | list):
            raise RefoldError("what a tool is said to have given is not an outcome of a tool: it has no content")
        parts = content if isinstance(content, str) else [content_part(part) for part in content]
        return cls(parts, doc.get("stop", False), doc.get("signal"), doc.get("metadata") or {})

    def message(self, tool_call_id: str) -> Message:
        """The message that answers the call."""
        text = self.content
        if type(text) is str and text.isascii() and not self.metadata:  # as most results are
            return Message.of_exact(role="tool", body=text, tool_call_id=tool_call_id or None)
        return Message("tool", self.content, tool_call_id=tool_call_id or None, metadata=self.metadata)

    @classmethod
    def of_error(cls, error: ErrorModel) -> "ToolOutcome":
        """The outcome of a call that failed; of an error's text, the metadata has at most 2,000 characters."""
        metadata = {"error": cut_middle(error.content, _ERROR_SHOWN), "error_type": error.type}
        return cls(content=error.to_xml(), metadata=metadata)

    @classmethod
    def of_result(cls, result: ActionResult) -> "ToolOutcome":
        """What came of an action that called a tool through `actions_of`.

        An error of the engine's (there is no such tool, a tool raised what it does not catch) is told like any other.
        """
        if result.ok:
            return cls.from_dict(result.output)
        error = ErrorModel(type=result.error_type or "Exception", content=result.error or "")
        return cls.of_error(error.within(_ERROR_TOLD))
