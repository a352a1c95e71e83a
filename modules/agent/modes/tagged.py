"""The two modes with JSON between `<tool-call>` tags."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..chat.tool_calls import ToolCall, ToolDefinition
from .jsontext import arguments_json, call_in, call_object, decode, dumped, is_cut_off, listed, matching_brace
from .markup import Tag, escape_attribute, tag_of, tag_pattern, unescape
from .mode import FoundCall, Problem, Reading
from .removal import cut

_TAG = tag_pattern(r"tool[-_]call")
_LAYOUT = re.compile(r"(?:\s|<!\[CDATA\[|```[\w-]*(?=\s))*")
_LAYOUT_END = re.compile(r"(?:\s|\]\]>|```)*")
_ENDS = ("]]>", "```")
_HALF_TAG = re.compile(r"<tool[-_]call\s+name\s*=[^<>]*\Z")
_CLOSING = "</tool-call"


@dataclass(frozen=True)
class Body:
    """The body of an element, and `end`, the end of the element.

    `value` is the body's JSON value if `is_json`. `is_open` is true if no tag closes the element.
    """

    text: str
    end: int
    value: Any = None
    is_json: bool = False
    is_open: bool = False


def body_of(text: str, opening: Tag, following: Tag | None) -> Body | None:
    """Return the body of the element that a tag opens.

    A JSON value is taken whole, even if its strings contain tags. Otherwise the body ends at the following tag, if that
    tag closes the element, or at the end of the text. Returns None if the following tag opens another element: the
    first tag is then not a call.
    """
    if opening.is_empty:
        return Body("", opening.end)
    layout = _LAYOUT.match(text, opening.end)
    start = layout.end() if layout else opening.end
    try:
        value, at = decode(text, start)
    except ValueError as error:
        if text.startswith("{", start) and is_cut_off(error, text):
            return Body(text[start:], len(text), is_open=True)
    else:
        after = _LAYOUT_END.match(text, at)
        at = after.end() if after else at
        closing = _TAG.match(text, at)
        if closing is not None and closing["slash"]:
            return Body(text[start:at], closing.end(), value, is_json=True)
        if at == len(text):
            return Body(text[start:at], at, value, is_json=True, is_open=True)
    if following is None:
        return Body(text[start:], len(text), is_open=True)
    if not following.closes:
        return None
    raw = text[start : _without_layout(text, start, following.start)]
    try:
        value, end = decode(unescape(raw))
    except ValueError:
        return Body(raw, following.end)
    return Body(raw, following.end, value, is_json=end == len(unescape(raw)))


def _without_layout(text: str, start: int, end: int) -> int:
    """Return the end of the text between `start` and `end`, without layout.

    The loop runs backwards because a regular expression takes quadratic time.
    """
    while end > start:
        if text[end - 1].isspace():
            end -= 1
        elif text.endswith(_ENDS, start, end):
            end -= 3
        else:
            break
    return end


Read = Callable[[Tag, Body], list[FoundCall | Problem] | None]


def read_elements(text: str, read: Read) -> Reading:
    """Return the calls in the elements of a text.

    `read` reads one element; it returns None for a tag that is not a call.
    """
    calls: list[FoundCall] = []
    problems: list[Problem] = []
    spans: list[tuple[int, int]] = []
    tags = [tag_of(match) for match in _TAG.finditer(text)]
    at = 0
    for opening, following in zip_longest(tags, tags[1:]):
        if opening.start < at or opening.closes or _is_quoted(text, opening):
            continue
        body = body_of(text, opening, following)
        found = read(opening, body) if body is not None else None
        if body is None or found is None:
            continue
        good = [item for item in found if isinstance(item, FoundCall)]
        calls += good
        problems += [item for item in found if isinstance(item, Problem)]
        if good:
            spans.append((opening.start, body.end))
        at = body.end
    half = _HALF_TAG.search(text, at)
    if half is not None:
        problems.append(Problem("the call was cut off in its first tag", half[0]))
    return Reading(cut(text, spans), tuple(calls), tuple(problems))


def _is_quoted(text: str, tag: Tag) -> bool:
    return text[tag.start - 1 : tag.start] == text[tag.end : tag.end + 1] == "`"


class JsonInXmlMode:
    """Calls as elements: the tool's name in the tag, JSON arguments inside."""

    stop: tuple[str, ...] = ()

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """See TextMode."""
        return (
            "You can call these tools, each given with a JSON Schema of its parameters:\n\n"
            f"{listed(tools)}\n\n"
            "To call a tool, write an element that names it, with a JSON object of its arguments inside:\n\n"
            '<tool-call name="the tool\'s name">{"parameter": "value"}</tool-call>\n\n'
            "Write one element for each call; there may be several in one answer. Inside the element there is JSON "
            "alone, without code fences."
        )

    def write(self, calls: Sequence[ToolCall]) -> str:
        """See TextMode."""
        return "\n".join(map(self._element, calls))

    def _element(self, call: ToolCall) -> str:
        arguments = arguments_json(call)
        body = _safe(arguments) if arguments is not None else call.arguments.replace(_CLOSING, "&lt;/tool-call")
        id_ = f" id={escape_attribute(call.id)}" if call.id else ""
        return f"<tool-call name={escape_attribute(call.name)}{id_}>{body}</tool-call>"

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """See TextMode."""
        return read_elements(text, self._read)

    def _read(self, opening: Tag, body: Body) -> list[FoundCall | Problem] | None:
        name = opening.attributes.get("name", "")
        if not name:
            return _without_name(body)
        id_ = opening.attributes.get("id") or None
        if body.is_json and isinstance(body.value, dict):
            return [FoundCall(name, dumped(body.value), id_)]
        if body.is_open:
            return [_cut_off(name, body)] if not body.text.strip() or body.text.startswith("{") else None
        return [FoundCall(name, body.text if body.text.strip() else "{}", id_)]


class JsonWithTagMode:
    """Calls as elements around a JSON object with name and arguments."""

    stop: tuple[str, ...] = ()

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """See TextMode."""
        return (
            "You can call these tools, each given with a JSON Schema of its parameters:\n\n"
            f"{listed(tools)}\n\n"
            "To call a tool, write a JSON object with its name and its arguments between two tags:\n\n"
            '<tool-call>{"name": "the tool\'s name", "arguments": {"parameter": "value"}}</tool-call>\n\n'
            "Write one pair of tags for each call; there may be several in one answer. Between the tags there is JSON "
            "alone, without code fences."
        )

    def write(self, calls: Sequence[ToolCall]) -> str:
        """See TextMode."""
        return "\n".join(f"<tool-call>{_safe(call_object(call))}</tool-call>" for call in calls)

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """See TextMode."""
        return read_elements(text, self._read)

    def _read(self, opening: Tag, body: Body) -> list[FoundCall | Problem] | None:
        name = opening.attributes.get("name")
        if name and not (isinstance(body.value, dict) and "name" in body.value):
            return JsonInXmlMode()._read(opening, body)
        return _without_name(body)


def _without_name(body: Body) -> list[FoundCall | Problem] | None:
    """Return the calls in an element whose tag names no tool.

    The element holds an object with a name and arguments, or a list of such objects.
    """
    raw = body.text
    if not body.is_json:
        if not raw.lstrip().startswith(("{", "[")):
            return None if body.is_open or not raw.strip() else [_not_json(raw)]
        return [_cut_off("", body) if body.is_open and matching_brace(raw, 0) is None else _not_json(raw)]
    values = body.value if isinstance(body.value, list) and body.value else [body.value]
    found: list[FoundCall | Problem] = []
    for value in values:
        call = call_in(value, ("arguments", "parameters"), raw) if isinstance(value, dict) else None
        found.append(call or Problem('the object in it needs "name" and "arguments"', raw))
    return found


def _cut_off(name: str, body: Body) -> Problem:
    what = f"the call to {name}" if name else "the call"
    return Problem(f"{what} was cut off: there is no closing </tool-call>", body.text)


def _not_json(raw: str) -> Problem:
    try:
        decode(raw)
        why = "there is more after its JSON value"
    except json.JSONDecodeError as error:
        why = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except ValueError as error:
        why = str(error)
    return Problem(f"the text between the tags is not valid JSON: {why}", raw)


def _safe(text: str) -> str:
    """Return JSON text in which no string closes the element.

    JSON allows a backslash before a slash.
    """
    return re.sub(r"</(?=tool[-_]call)", r"<\\/", text)
