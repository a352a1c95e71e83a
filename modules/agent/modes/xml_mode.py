"""Mode `xml`: calls and their arguments as nested elements."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..chat.readable_schema import TYPES, readable
from ..chat.tool_calls import ToolCall, ToolDefinition
from .elements import ENTRY, ITEM, Element, element_of
from .jsontext import arguments_json, dumped
from .markup import Tag, escape, escape_attribute, numbered_breaks, tag_pattern, tags
from .mode import FoundCall, Problem, Reading
from .removal import cut
from .schema_values import allowed_types, as_json, object_value, resolved, type_of

_CALL = tag_pattern("rg-tool-call")
_HALF_TAG = re.compile(r"<rg-tool-call\s+name\s*=[^<>]*\Z")
_END = "</rg-tool-call>"
_BEGINS_WITH_ARGUMENT = re.compile(r"\s*<(?!/?rg-tool-call\b)[A-Za-z_!]")
_SAFE_KEY = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


class XmlMode:
    """A call is `<rg-tool-call name="find"><q>tea</q></rg-tool-call>`, an element for each argument.

    Values other than text have a type: `<n type="integer">3</n>`. A list holds `<item>` elements. An object holds an
    element for each member, or `<entry key="...">` for a name that cannot be an element name. If a model omits the
    types, the tool's schema determines them; without a schema, the form of the value does.
    """

    stop: tuple[str, ...] = (_END,)

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """See TextMode."""
        return (
            "You can call these tools:\n\n"
            "<available-tools>\n" + "\n".join(map(_definition, tools)) + "\n</available-tools>\n\n"
            "To call a tool, write an element that names it, with an element for each argument inside:\n\n"
            '<rg-tool-call name="the tool\'s name">\n'
            "<text>value</text>\n"
            '<number type="integer">3</number>\n'
            '<list type="array"><item>first</item><item>second</item></list>\n'
            '<object type="object"><member>value</member></object>\n'
            f"{_END}\n\n"
            "Write &lt; for < and &amp; for & inside of values. The answer ends after the call."
        )

    def write(self, calls: Sequence[ToolCall]) -> str:
        """See TextMode."""
        return "\n".join(map(_written, calls))

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """See TextMode."""
        schemas = {tool.function.name: readable(tool.function.parameters) for tool in tools}
        calls: list[FoundCall] = []
        problems: list[Problem] = []
        spans: list[tuple[int, int]] = []
        at = 0
        for opening, closing, is_last in _pairs(list(tags(text, _CALL))):
            if opening.start < at:
                continue  # nested in another call
            if closing is None and not is_last and not _BEGINS_WITH_ARGUMENT.match(text, opening.end):
                continue  # unclosed, and another call follows: not a call
            inner_end, end = (len(text), len(text)) if closing is None else (closing.start, closing.end)
            body = "" if opening.is_empty else text[opening.end : inner_end]
            found = _call(opening, body, schemas, is_open=closing is None)
            if isinstance(found, FoundCall):
                calls.append(found)
                spans.append((opening.start, end))
            elif found is not None:
                problems.append(found)
            at = end
        half = _HALF_TAG.search(text, at)
        if half is not None:
            problems.append(Problem("the call was cut off in its first tag", half[0]))
        return Reading(cut(text, spans), tuple(calls), tuple(problems))


def with_end(text: str) -> str:
    """Return a model's text with the closing tag that the model omitted.

    The tag is a stop text, so the model stops before writing it.
    """
    pairs = _pairs(list(tags(text, _CALL)))
    if not pairs or pairs[-1][1] is not None:
        return text
    opening = pairs[-1][0]
    element = element_of(opening, text[opening.end :])
    return text if element.has_text or "name" not in opening.attributes else text + _END


def _pairs(found: list[Tag]) -> list[tuple[Tag, Tag | None, bool]]:
    """Return opening tags with closing tags; mark the last pair."""
    closed_by: dict[int, Tag] = {}
    open_: list[Tag] = []
    for tag in found:
        if tag.is_empty:
            closed_by[tag.start] = tag
        elif not tag.closes:
            open_.append(tag)
        elif open_:
            closed_by[open_.pop().start] = tag
    openings = [tag for tag in found if tag.is_empty or not tag.closes]
    return [(tag, closed_by.get(tag.start), tag is openings[-1]) for tag in openings]


def _call(opening: Tag, body: str, schemas: Mapping[str, Any], *, is_open: bool) -> FoundCall | Problem | None:
    name, raw = opening.attributes.get("name", ""), body.strip()
    element = element_of(opening, body)
    if is_open:
        if not name or (raw and not raw.startswith("<")):
            return None  # not a call
        return Problem(f"the call to {name} was cut off: there is no closing {_END}", raw)
    if not name:
        return Problem('the element needs the name of a tool: <rg-tool-call name="...">', raw)
    attributes = {key: value for key, value in opening.attributes.items() if key not in ("name", "id")}
    try:
        written = _arguments(element, attributes, schemas.get(name, {}))
    except RecursionError:
        return Problem(f"the arguments of {name} nest too deep", raw)
    if written is None:
        return Problem(f"the call to {name} has text where an element for each argument was expected", raw)
    return FoundCall(name, written, opening.attributes.get("id") or None)


def _arguments(element: Element, attributes: Mapping[str, str], schema: Mapping[str, Any]) -> str | None:
    """Return a call's arguments as JSON.

    Returns None if the element holds text other than a JSON object.
    """
    if not element.has_text:
        return dumped(object_value(element, attributes, schema, schema))
    value = as_json(element.body.strip())
    return dumped(value) if isinstance(value, dict) else None


def _written(call: ToolCall) -> str:
    text = arguments_json(call)
    id_ = f" id={escape_attribute(call.id)}" if call.id else ""
    head = f"<rg-tool-call name={escape_attribute(call.name)}{id_}>"
    if text is None:
        return f"{head}{escape(call.arguments)}{_END}"
    members = [_member(key, value) for key, value in json.loads(text).items()]
    return "\n".join([head, *members, _END]) if members else f"{head}{_END}"


def _member(key: str, value: Any) -> str:
    if _SAFE_KEY.fullmatch(key) and key not in (ENTRY, "rg-tool-call"):
        return _element(key, "", value)
    return _element(ENTRY, f" key={escape_attribute(key)}", value)


def _element(tag: str, attributes: str, value: Any) -> str:
    type_ = type_of(value)
    said = "" if type_ == "string" else f' type="{type_}"'
    if isinstance(value, str):
        inner = numbered_breaks(escape(value))
    elif isinstance(value, list):
        inner = "".join(_element(ITEM, "", item) for item in value)
    elif isinstance(value, dict):
        inner = "".join(_member(key, item) for key, item in value.items())
    else:
        inner = json.dumps(value)
    return f"<{tag}{attributes}{said}>{inner}</{tag}>"


def _definition(tool: ToolDefinition) -> str:
    function = tool.function
    schema = readable(function.parameters)
    required = schema.get("required", ())
    lines = [f"<rg-tool name={escape_attribute(function.name)}>"]
    if function.description:
        lines.append(f"<description>{escape(function.description)}</description>")
    lines.append("<parameters>")
    for name, of_parameter in schema.get("properties", {}).items():
        lines.append(_parameter(name, of_parameter, schema, is_required=name in required))
    return "\n".join([*lines, "</parameters>", "</rg-tool>"])


def _parameter(name: str, schema: dict[str, Any], root: Any, *, is_required: bool) -> str:
    """Return the description of a parameter.

    If the type alone does not describe the parameter, the description holds its schema.
    """
    types = sorted(allowed_types(resolved(schema, root), root), key=TYPES.index)
    facts = [f"name={escape_attribute(name)}", f'type="{" or ".join(types) or "any"}"']
    facts.append(f'required="{"true" if is_required else "false"}"')
    if schema.get("description"):
        facts.append(f"description={escape_attribute(str(schema['description']))}")
    rest = {k: v for k, v in schema.items() if k not in ("title", "description", "type", "default")}
    if rest.keys() == {"anyOf"} and all(option.keys() == {"type"} for option in rest["anyOf"]):
        rest = {}  # the type attribute says the same
    if "default" in schema and schema["default"] is not None:
        facts.append(f"default={escape_attribute(json.dumps(schema['default']))}")
    if not rest:
        return f"<param {' '.join(facts)}/>"
    return f"<param {' '.join(facts)}>{escape(dumped(rest))}</param>"
