"""JSON in the midst of other text: finding objects, reading calls from them, and writing calls as objects."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..calls import ToolCall, ToolDefinition
from .mode import FoundCall, Problem

_DECODER = json.JSONDecoder(strict=False)
_MAX_UNENDING = 50
_BEGINS_AS_CALL = re.compile(r"""\{\s*["']?(?:name|arguments|parameters|type|function)["']?\s*:""")
_NAME = re.compile(r"""["']?\bname["']?\s*:\s*["']?([^"',}\s]*)""")
_ARGUMENTS = re.compile(r"""["']?\b(?:arguments|parameters)["']?\s*:""")


@dataclass(frozen=True)
class Found:
    """An object in a text, from `start` to `end`; `value` is None where it is broken, and `why` says how."""

    start: int
    end: int
    value: dict[str, Any] | None
    why: str = ""


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and where it ends.

    Line breaks may stand in its strings. Raises ValueError, whatever is wrong with it.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def objects(text: str, names: Collection[str] = ()) -> Iterator[Found]:
    """The JSON objects of a text that are not inside of others, and the broken ones that look like a call.

    `names` are those of the tools that there are.
    """
    at, unending = text.find("{"), 0
    while at >= 0 and unending < _MAX_UNENDING:
        try:
            value, end = decode(text, at)
        except ValueError as error:
            is_open = is_cut_off(error, text)
            unending += is_open
            end = at + 1
            if _looks_like_call(text, at, names):
                closing = None if is_open else matching_brace(text, at)
                end = len(text) if closing is None else closing
                yield Found(at, end, None, "it was cut off" if closing is None else _said(error))
        else:
            yield Found(at, end, value)
        at = text.find("{", end)


def is_cut_off(error: ValueError, text: str) -> bool:
    """Whether a text that could not be decoded is JSON up to its end."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip())


def _said(error: ValueError) -> str:
    return f"it is not valid JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}"


def _looks_like_call(text: str, at: int, names: Collection[str]) -> bool:
    """Whether a broken object begins as a call does: with its name and its arguments, or with the name of a tool."""
    if not _BEGINS_AS_CALL.match(text, at):
        return False
    rest = text[at:]
    named = _NAME.search(rest)
    return named is not None and (named[1] in names or _ARGUMENTS.search(rest) is not None)


def matching_brace(text: str, start: int) -> int | None:
    """Where the object that begins at `start` would end, going by braces outside of strings; None if it does not."""
    depth, at, quoted = 0, start, False
    while at < len(text):
        character = text[at]
        if quoted and character == "\\":
            at += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in "{[":
            depth += 1
        elif not quoted and character in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None


def call_in(
    value: dict[str, Any], keys: tuple[str, str], raw: str, names: Collection[str] = ()
) -> FoundCall | Problem | None:
    """The call that an object is, its arguments under the first of `keys` that it has; None if it is no call.

    An object that holds nothing but the name of a tool, one of `names`, is a call without arguments.
    """
    function = value.get("function")
    if isinstance(function, dict) and "name" not in value:
        value = function
    if "name" not in value:
        return None
    name = value["name"]
    key = next((key for key in keys if key in value), None)
    if key is None:
        bare = isinstance(name, str) and name in names and not value.keys() - {"name", "id", "type"}
        return FoundCall(name, "{}") if bare else None
    arguments = value[key]
    if not isinstance(name, str) or not name:
        return Problem(f'"name" must be the name of a tool, got {json.dumps(name)}', raw)
    if isinstance(arguments, str):
        return FoundCall(name, arguments if arguments.strip() else "{}")
    if not (arguments is None or isinstance(arguments, dict)):
        return Problem(f'"{key}" of the call to {name} must be an object, got {json.dumps(arguments):.80}', raw)
    return FoundCall(name, dumped(arguments or {}))


def dumped(value: Any) -> str:
    """A value as JSON text that every request can hold."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text) else json.dumps(value)


def arguments_json(call: ToolCall) -> str | None:
    """The arguments of a call, as it holds them, if they are a JSON object."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return call.arguments.strip() if isinstance(value, dict) else None


def call_object(call: ToolCall) -> str:
    """A call as a JSON object of name and arguments; arguments that are no object stand as a string."""
    arguments = arguments_json(call)
    written = dumped(call.arguments) if arguments is None else arguments
    return f'{{"name": {dumped(call.name)}, "arguments": {written}}}'


def listed(tools: Sequence[ToolDefinition]) -> str:
    """The definitions of tools, one JSON object a line, between tags."""
    lines = []
    for tool in tools:
        function = tool.function.to_dict()
        lines.append(
            dumped(
                {
                    "name": function["name"],
                    "description": function["description"] or "",
                    "parameters": function["parameters"] or {"type": "object", "properties": {}},
                }
            )
        )
    return "\n".join(["<available-tools>", *lines, "</available-tools>"])


def names_of(tools: Sequence[ToolDefinition]) -> frozenset[str]:
    """The names of tools."""
    return frozenset(tool.function.name for tool in tools)
