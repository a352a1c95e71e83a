"""JSON within other text: find objects, and read and write calls."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..chat.tool_calls import ToolCall, ToolDefinition
from .mode import FoundCall, Problem

_DECODER = json.JSONDecoder(strict=False)
_MAX_UNENDING = 50
_WINDOW = 4096
"""Characters of the first decoding attempt; a longer value is decoded again from a larger piece."""
_LONGEST_WORD = 16
"""An error this close to a piece's end may come from the cut: `-Infinity` has nine characters."""
_BEGINS = re.compile(r"""\{\s*(?:["'}]|(?:name|arguments|parameters|type|function)\b)""")
_BEGINS_AS_CALL = re.compile(r"""\{\s*["']?(?:name|arguments|parameters|type|function)["']?\s*:""")
_NAME = re.compile(r"""["']?\bname["']?\s*:\s*["']?([^"',{}\s]*)""")
_ARGUMENTS = re.compile(r"""["']?\b(?:arguments|parameters)["']?\s*:""")


@dataclass(frozen=True)
class Found:
    """A JSON object in a text, from `start` to `end`.

    `value` is None if the object is broken; `why` then has the reason.
    """

    start: int
    end: int
    value: dict[str, Any] | None
    why: str = ""


class _Ahead:
    """The first match of a pattern at or after a position.

    While the positions grow, the text is searched only once.
    """

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._match = pattern.search(text)

    def at(self, place: int) -> re.Match[str] | None:
        if self._match is not None and self._match.start() < place:
            self._match = self._pattern.search(self._text, place)
        return self._match


def decode(text: str, start: int = 0) -> tuple[Any, int]:
    """Return the JSON value that starts at `start`, and its end.

    Its strings may contain line breaks. Raises ValueError for every defect.
    """
    size = _WINDOW
    while True:
        # Decode pieces: a JSONDecodeError counts the lines before it, and a long text may have many errors.
        piece = text[start : start + size]
        whole = start + size >= len(text)
        try:
            value, end = _DECODER.raw_decode(piece)
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except json.JSONDecodeError as error:
            if whole or (not error.msg.startswith("Unterminated") and error.pos < len(piece) - _LONGEST_WORD):
                error.pos += start
                raise
        else:
            if whole or end < len(piece):
                return value, start + end
        size *= 16


def objects(text: str, names: Collection[str] = ()) -> Iterator[Found]:
    """Return the outermost JSON objects of a text.

    Broken objects that look like a call are included. `names` are the names of the tools.
    """
    at, unending = text.find("{"), 0
    text_ends, named, given = len(text.rstrip()), _Ahead(_NAME, text), _Ahead(_ARGUMENTS, text)
    while at >= 0 and unending < _MAX_UNENDING:
        if not _BEGINS.match(text, at):
            at = text.find("{", at + 1)
            continue
        try:
            value, end = decode(text, at)
        except ValueError as error:
            is_open = isinstance(error, json.JSONDecodeError) and _is_cut_off(error, text_ends)
            unending += is_open or not isinstance(error, json.JSONDecodeError)  # otherwise the object nests too deep
            end = at + 1
            if _BEGINS_AS_CALL.match(text, at) and _names_a_call(named.at(at), given.at(at), names):
                closing = None if is_open else matching_brace(text, at)
                end = len(text) if closing is None else closing
                yield Found(at, end, None, "it was cut off" if closing is None else _said(error))
        else:
            yield Found(at, end, value)
        at = text.find("{", end)


def is_cut_off(error: ValueError, text: str) -> bool:
    """Return whether a text that could not be decoded is cut-off JSON."""
    return isinstance(error, json.JSONDecodeError) and _is_cut_off(error, len(text.rstrip()))


def _is_cut_off(error: json.JSONDecodeError, text_ends: int) -> bool:
    return error.msg.startswith("Unterminated") or error.pos >= text_ends


def _said(error: ValueError) -> str:
    return f"it is not valid JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}"


def _names_a_call(named: re.Match[str] | None, given: re.Match[str] | None, names: Collection[str]) -> bool:
    """Return whether a broken object starts like a call.

    A call has a name and arguments, or only the name of a tool.
    """
    return named is not None and (named[1] in names or given is not None)


def matching_brace(text: str, start: int) -> int | None:
    """Return the end of the object at `start`, by its braces.

    Braces in strings are skipped. Returns None if the object does not end.
    """
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
    """Return the call in an object, or None.

    Its arguments are under the first of `keys` that it has. An object with only the name of a tool, one of `names`, is
    a call without arguments. Returns a Problem for a call whose name or arguments do not fit.
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
    """Return a value as JSON text with lone surrogates escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text) else json.dumps(value)


def arguments_json(call: ToolCall) -> str | None:
    """Return a call's arguments if they are a JSON object, or None."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return call.arguments.strip() if isinstance(value, dict) else None


def call_object(call: ToolCall) -> str:
    """Return a call as a JSON object of name and arguments.

    Arguments other than an object are written as a string.
    """
    arguments = arguments_json(call)
    written = dumped(call.arguments) if arguments is None else arguments
    return f'{{"name": {dumped(call.name)}, "arguments": {written}}}'


def listed(tools: Sequence[ToolDefinition]) -> str:
    """Return the definitions of tools between tags, one JSON object a line."""
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
    """Return the names of tools."""
    return frozenset(tool.function.name for tool in tools)
