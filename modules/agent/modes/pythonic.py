"""Mode `pythonic`: a list of Python calls with literal keyword arguments."""

import ast
import json
import keyword
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..chat.readable_schema import readable
from ..chat.tool_calls import ToolCall, ToolDefinition
from .jsontext import arguments_json, dumped, listed
from .mode import FoundCall, Problem, Reading
from .removal import cut

_NAME = re.compile(r"""\s*([^\s\[\](){}'",=#]+)\s*\(""")
_GIVEN_BY_NAME = re.compile(r"\s*(?:\w+\s*=|\*\*)")
_BETWEEN = re.compile(r"\s*(?:,\s*)?")
_COMMENTS = re.compile(r"(?:\s*#[^\n]*\n)*\s*")
_WORDS = {"true": True, "false": False, "null": None}
_MAX_UNENDING = 50
_CLOSERS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class _Block:
    """A list of calls in a text, by name and argument text.

    `end` is None if the list is cut off.
    """

    start: int
    end: int | None
    calls: tuple[tuple[str, str], ...]


class _NotLiteral(ValueError):
    """The value of an argument is not a literal."""


class PythonicMode:
    """Reads the last list of calls in a text.

    Earlier lists are part of the model's reasoning.
    """

    stop: tuple[str, ...] = ()

    def describe(self, tools: Sequence[ToolDefinition]) -> str:
        """See TextMode."""
        return (
            "You can call these tools, each given with a JSON Schema of its parameters:\n\n"
            f"{listed(tools)}\n\n"
            "To call tools, write one list of function calls as in Python. Give every argument by its name, and as a "
            "literal:\n\n"
            '[first_tool(text="value", number=-2, flags=[True, None]), second_tool()]'
        )

    def write(self, calls: Sequence[ToolCall]) -> str:
        """See TextMode."""
        return f"[{', '.join(map(_written, calls))}]" if calls else ""

    def read(self, text: str, tools: Sequence[ToolDefinition] = ()) -> Reading:
        """See TextMode."""
        parameters = {t.function.name: list(readable(t.function.parameters).get("properties", {})) for t in tools}
        last: tuple[_Block, list[FoundCall | Problem]] | None = None
        at, unending = text.find("["), 0
        while at >= 0 and unending < _MAX_UNENDING:
            block = _block(text, at)
            read = _calls(block, parameters, text[at:]) if block is not None else None
            if block is not None and read is not None:
                last = block, read
            unending += block is not None and block.end is None
            if block is not None and block.end is None and read is not None:
                break  # the rest is inside an unfinished call
            at = text.find("[", at + 1 if block is None or block.end is None else block.end)
        if last is None:
            return Reading(text)
        block, found = last
        calls = tuple(item for item in found if isinstance(item, FoundCall))
        problems = tuple(item for item in found if isinstance(item, Problem))
        spans = [(block.start, block.end)] if calls and block.end is not None else []
        return Reading(cut(text, spans), calls, problems)


def _block(text: str, start: int) -> _Block | None:
    """Return the list of calls that starts at `start`, or None."""
    calls: list[tuple[str, str]] = []
    at = start + 1
    while True:
        at = _after_comments(text, at)
        if calls and text.startswith("]", at):
            return _Block(start, at + 1, tuple(calls))
        match = _NAME.match(text, at)
        if match is None:
            is_cut_off = bool(calls) and not text[at:].strip()
            return _Block(start, None, tuple(calls)) if is_cut_off else None
        end = _closing(text, match.end() - 1)
        if end is None:
            return _Block(start, None, (*calls, (match[1], text[match.end() :])))
        calls.append((match[1], text[match.end() : end]))
        between = _BETWEEN.match(text, _after_comments(text, end + 1))
        at = between.end() if between else end + 1


def _after_comments(text: str, at: int) -> int:
    match = _COMMENTS.match(text, at)
    return match.end() if match else at


def _closing(text: str, start: int) -> int | None:
    """Return the position that closes the bracket at `start`.

    Strings and comments are skipped. Returns None if the bracket is not closed or the wrong kind closes it.
    """
    open_: list[str] = []
    at = start
    while at < len(text):
        character = text[at]
        if character in "'\"":
            quote = character * 3 if text.startswith(character * 3, at) else character
            ended = _string_end(text, at + len(quote), quote)
            if ended is None:
                return None
            at = ended
            continue
        if character == "#":
            line_end = text.find("\n", at)
            at = len(text) if line_end < 0 else line_end
            continue
        if character in _CLOSERS:
            open_.append(_CLOSERS[character])
        elif character in ")]}":
            if open_.pop() != character:
                return None
            if not open_:
                return at
        at += 1
    return None


def _string_end(text: str, at: int, quote: str) -> int | None:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        elif text[at] == "\n" and len(quote) == 1:
            return None
        else:
            at += 1
    return None


def _calls(block: _Block, parameters: dict[str, list[str]], raw: str) -> list[FoundCall | Problem] | None:
    """Return the calls of a block, or None.

    Returns None if the block is not a list of calls: it names no tool and has no argument by name.
    """

    def is_likely(name: str, written: str) -> bool:
        given = _GIVEN_BY_NAME.search(written) if block.end is not None else _GIVEN_BY_NAME.match(written)
        return name in parameters or given is not None or not (parameters or written.strip())

    if not any(is_likely(name, written) for name, written in block.calls):
        return None
    if block.end is None:
        return [Problem("the list of calls was cut off, or a bracket or a quote in it is not closed", raw)]
    return [_call(name, written, parameters.get(name, [])) for name, written in block.calls]


def _call(name: str, written: str, parameters: list[str]) -> FoundCall | Problem:
    raw = f"{name}({written})"
    try:
        parsed = ast.parse(f"f({written}\n)", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        return Problem(f"the call to {name} is not valid Python: {said}", raw)
    assert isinstance(parsed, ast.Call)
    try:
        arguments = _arguments(parsed, parameters)
    except RecursionError:
        return Problem(f"the arguments of {name} nest too deep", raw)
    except _NotLiteral as error:
        return Problem(f"the call to {name}: {error}", raw)
    return FoundCall(name, dumped(arguments))


def _arguments(call: ast.Call, parameters: list[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}

    def add(name: str, node: ast.expr) -> None:
        if name in arguments:
            raise _NotLiteral(f"{name} is given twice")
        arguments[name] = _value(node)

    if len(call.args) > len(parameters) or any(isinstance(node, ast.Starred) for node in call.args):
        raise _NotLiteral("give each argument by its name, as in tool(name=value)")
    for name, node in zip(parameters, call.args, strict=False):
        add(name, node)
    for given in call.keywords:
        if given.arg is not None:
            add(given.arg, given.value)
        elif isinstance(given.value, ast.Dict):
            for name, value in _value(given.value).items():
                if name in arguments:
                    raise _NotLiteral(f"{name} is given twice")
                arguments[name] = value
        else:
            raise _NotLiteral("** takes a dict that is written out")
    return arguments


def _value(node: ast.expr) -> Any:
    """Return the JSON value of a literal.

    A bare name is a text, except true, false and null.
    """
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, float) and value - value != 0.0:
            raise _NotLiteral("a number is too large")
        if value is None or isinstance(value, str | int | float):
            return value
        raise _NotLiteral(f"{ast.unparse(node):.40} is not a JSON value")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _value(node.operand)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return _dict(node)
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_value(node.value)}.{node.attr}"
    if isinstance(node, ast.JoinedStr) and all(isinstance(part, ast.Constant) for part in node.values):
        return "".join(str(_value(part)) for part in node.values)
    raise _NotLiteral(f"write the value itself, not {ast.unparse(node):.40}")


def _dict(node: ast.Dict) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise _NotLiteral("** inside of a dict is not taken")
        name = _value(key)
        if isinstance(name, list | dict):
            raise _NotLiteral("the keys of a dict are texts")
        found[name if isinstance(name, str) else json.dumps(name)] = _value(value)
    return found


def _written(call: ToolCall) -> str:
    text = arguments_json(call)
    if text is None:
        return f"{call.name}(arguments={call.arguments!r})"
    written = [_argument(name, value) for name, value in json.loads(text).items()]
    return f"{call.name}({', '.join(written)})"


def _argument(name: str, value: Any) -> str:
    """Return the source text of an argument passed by name.

    A name that is not valid in Python is written in a `**` dict.
    """
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return f"{name}={_literal(value)}" if plain else f"**{_literal({name: value})}"


def _literal(value: Any) -> str:
    """Return a JSON value as a Python literal in encodable characters."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and value - value != 0.0:
        return "1e999" if value > 0 else "-1e999"
    return repr(value)
