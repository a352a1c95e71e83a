"""Reads a server's messages: each answer ends its call, readable or not.

The package `mcp` drops what it cannot parse, so a call whose answer is malformed would wait until its timeout, and then
seem not to be carried out. Every transport therefore passes what arrives through `Answers`, which yields only messages
that the package accepts.
"""

import json
import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from mcp.types import jsonrpc_message_adapter
from mcp.types.methods import parse_server_result
from pydantic import ValidationError
from pydantic_core import from_json

log = logging.getLogger("refold")
UNREADABLE = f"unreadable ({secrets.token_hex(8)}): "
"""The start of the error in place of an unreadable answer; random, so that no text of a server looks like it."""
_PARSE_ERROR = -32700
_SHOWN = 200
"""The most characters of an unreadable answer in its error."""
_VERSION = "io.modelcontextprotocol/protocolVersion"
_HANDSHAKE = "2025-11-25"
"""The version whose results are checked if a request names none, as those of the older versions."""
_LISTS = {"tools/list": "tools", "tools/call": "content"}
"""The member of a method's result in which one malformed item must not take the others along."""
MOST_TOOLS = 2_000
"""The most tools of a server; a model accepts far fewer, and each costs time in every run."""
_LATE = object()
_HALF = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_VALUE = re.compile(r"""\s*:\s*("[^"\\]{0,99}"|-?\d{1,18}(?![\d.eE]))?""")


class Answers:
    """The open requests of a connection, and the reader of their answers."""

    def __init__(self) -> None:
        self._open: dict[Any, tuple[str, str]] = {}
        self._last = -1
        self._lost = ""
        self._unnamed = 0
        self._owners: set[Any] = set()
        self._noted: int | None = None

    def sent(self, number: Any, method: str | None, params: Mapping[str, Any] | None) -> None:
        """Note a message to the server."""
        params = params or {}
        if number is None:
            self._noted = self._last
            if method == "notifications/cancelled":
                self._open.pop(number := params.get("requestId"), None)
                self._owners.discard(number)
        elif method is not None:
            self._open[number] = method, (params.get("_meta") or {}).get(_VERSION, _HANDSHAKE)
            self._last = max(self._last, number if isinstance(number, int) else -1)

    def read(self, data: bytes | str, number: Any = None) -> list[dict[str, Any]]:
        """Return a text's messages, as the package accepts them.

        Text that is no JSON, and JSON that is no message, is skipped with a line in the log: programs print such lines.
        An answer that names no request (truncated before its id, an id of a wrong type) is that of the only open one;
        with several open requests, it is decided once the others have answers. If `number` is given, the text is a
        reply to this request, and its answer is that of the request, whatever it names.
        """
        try:
            document = _parsed(data)
        except (ValueError, RecursionError):
            text = _text(data)
            members = _top_members(text)
            if members.keys() & {"jsonrpc", "result", "error"} and "method" not in members:
                named = members.get("id") if number is None else number
                return list(self._answered(named, None, text, "error" in members))
            return _skipped()
        messages: list[dict[str, Any]] = []
        for each in document if isinstance(document, list) else [document]:
            if _is_answer(each):
                named = each.get("id") if number is None else number
                text = json.dumps(each, ensure_ascii=False, default=str)
                messages += self._answered(named, each, text, "error" in each)
            else:
                messages += _other(each)
        return messages

    def read_reply(self, data: bytes | str, number: Any) -> list[dict[str, Any]]:
        """Return the messages in a reply, which ends its request."""
        return [*self.read(data, number), *self._unreadable(number, _text(data))]

    def _answered(
        self, named: Any, answer: dict[str, Any] | None, text: str, is_error: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield the answer of a request; None stands for an unparsed one."""
        number = self._owner(named)
        if number is _LATE or (number is None and is_error and self._noted is not None):
            return  # some servers answer notifications: with errors, which can name no request
        if number is None:
            self._unnamed, self._owners, self._lost = self._unnamed + 1, set(self._open), text
        else:
            method, version = self._open[number]
            try:
                if answer is None or ("result" in answer and answer.get("error") is not None):
                    raise ValueError
                jsonrpc_message_adapter.validate_python(message := {**answer, "id": number}, by_name=False)
                if method in _LISTS and "result" in message:
                    message["result"] = _mended(method, version, message["result"])
            except ValueError:
                yield from self._unreadable(number, text)
            else:
                del self._open[number]
                yield message
            self._owners.discard(number)
            if self._noted is not None and number > self._noted:
                self._noted = None
        if self._owners and len(self._owners) <= self._unnamed:
            for owner in self._owners:
                yield from self._unreadable(owner, self._lost)
            self._owners = set()
        self._unnamed = self._unnamed if self._owners else 0

    def _owner(self, named: Any) -> Any:
        """Return the open request that an id names, None, or _LATE."""
        if isinstance(named, str) and named.isascii() and named.removeprefix("-").isdigit() and len(named) < _SHOWN:
            named = int(named)
        if isinstance(named, bool) or not isinstance(named, int | float | str):
            return None
        if named in self._open:
            return next(number for number in self._open if number == named)
        return _LATE if isinstance(named, int) and 0 <= named <= self._last else None

    def _unreadable(self, number: Any, text: str) -> Iterator[dict[str, Any]]:
        if self._open.pop(number, None) is not None:
            error = {"code": _PARSE_ERROR, "message": UNREADABLE + repr(text[:_SHOWN])}
            yield {"jsonrpc": "2.0", "id": number, "error": error}


def _text(data: bytes | str) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def _parsed(data: bytes | str) -> Any:
    """Return a text's JSON; what UTF-8 cannot carry becomes U+FFFD."""
    try:
        return from_json(data)
    except ValueError:
        document = json.loads(_text(data).removeprefix("\ufeff"), strict=False)
        return from_json(_HALF.sub("\ufffd", json.dumps(document, ensure_ascii=False)))


def _top_members(text: str) -> dict[str, Any]:
    """Return a broken object's members; of values, only short ones."""
    found: dict[str, Any] = {}
    depth = 0
    if text.lstrip("\ufeff\ufffd\0 \t\r")[:1] != "{":
        return found
    for token in _TOKEN.finditer(text):
        if token[0][0] != '"':
            depth += 1 if token[0] in "{[" else -1
        elif depth == 1 and (value := _VALUE.match(text, token.end())) is not None:
            found[token[0][1:-1]] = json.loads(value[1]) if value[1] else None
    return found


def _is_answer(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    ends = [document[name] for name in ("result", "error") if name in document]
    if not ends:
        return "jsonrpc" in document and "method" not in document
    return "jsonrpc" in document or "id" in document or any(isinstance(end, dict) for end in ends)


def _other(document: Any) -> list[dict[str, Any]]:
    """Return a request or notification of the server, or nothing."""
    try:
        jsonrpc_message_adapter.validate_python(document, by_name=False)
    except ValidationError:
        return _skipped()
    return [document]


def _skipped() -> list[dict[str, Any]]:
    log.warning("an MCP server has sent something that is not a message of the protocol; it is skipped")
    return []


def _mended(method: str, version: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its malformed items.

    Tools are left out; blocks of content become a text that names them. Schemas of results are left out, too: the
    package checks each result by them in the event loop, and one with the pattern `^(a+)+$` takes for ever.
    """
    name = _LISTS[method]
    items = result.get(name)
    if not isinstance(items, list):
        return result
    if method == "tools/list":
        items = [dict(each) if isinstance(each, dict) else each for each in items[: MOST_TOOLS + 1]]
        for tool in items:
            if isinstance(tool, dict):
                tool.pop("outputSchema", None)
    result = {**result, name: items}

    def fault(kept: list[Any]) -> ValidationError | None:
        try:
            parse_server_result(method, version, {**result, name: kept})
        except ValidationError as error:
            return error
        return None

    if fault(items) is None or fault([]) is not None:
        return result
    kept = []
    for item in items:
        error = fault([item])
        if error is None:
            kept.append(item)
        elif method == "tools/call":
            kind = item.get("type") if isinstance(item, dict) else None
            kept.append(
                {"type": "text", "text": f"[content of an unknown or malformed type ({kind!r:.80}) is left out]"}
            )
        else:
            shown = item.get("name") if isinstance(item, dict) else item
            log.warning("an MCP server lists a malformed tool, which is left out: %.80r (%s)", shown, reasons(error))
    return {**result, name: kept}


def reasons(error: ValidationError) -> str:
    """Return what pydantic found first, in one line."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
