"""Mode `json`: each call is a JSON object in the text."""

from collections.abc import Sequence

from ..chat.tool_calls import ToolCall, ToolDefinition
from .jsontext import call_in, call_object, listed, names_of, objects
from .mode import FoundCall, Problem, Reading
from .removal import cut

_KEYS = ("parameters", "arguments")


class JsonMode:
    """Reads each outermost object with a name and arguments as a call.

    The arguments are in `parameters` or `arguments`. An object inside another is not a call.
    """

    stop: tuple[str, ...] = ()

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """See TextMode."""
        return (
            "You can call these tools, each given with a JSON Schema of its parameters:\n\n"
            f"{listed(tools)}\n\n"
            "To call a tool, write a JSON object with its name and its arguments, and nothing else in that object:\n\n"
            '{"name": "the tool\'s name", "arguments": {"parameter": "value"}}\n\n'
            "Write one object for each call; there may be several in one answer."
        )

    def write(self, calls: Sequence[ToolCall]) -> str:
        """See TextMode."""
        return "\n".join(map(call_object, calls))

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """See TextMode."""
        calls: list[FoundCall] = []
        problems: list[Problem] = []
        spans: list[tuple[int, int]] = []
        names = names_of(tools)
        for found in objects(text, names):
            raw = text[found.start : found.end]
            read = call_in(found.value, _KEYS, raw, names) if found.value is not None else Problem(found.why, raw)
            if isinstance(read, FoundCall):
                calls.append(read)
                spans.append((found.start, found.end))
            elif read is not None:
                problems.append(read)
        return Reading(cut(text, spans), tuple(calls), tuple(problems))
