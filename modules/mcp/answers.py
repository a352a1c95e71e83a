"""Reads a server's messages: each answer ends its call, readable or not.

The package `mcp` drops what it cannot parse, so a call whose answer is malformed would wait until its timeout, and then
seem not to be carried out. Every transport therefore passes what arrives through `OpenRequests`, which yields only
messages that the package accepts.
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
_BETWEEN = "\ufeff\ufffd\0 \t\r\n[,"
"""What may stand before a message on its line."""
_HALF = re.compile("[\ud800-\udfff]")
_START = re.compile(r'\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:')
_NEXT = re.compile(r'\{\s*"jsonrpc"\s*:')
"""The start of a message after a broken one, whose own members may be called `id` or `error`."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_VALUE = re.compile(r"""\s*:\s*("[^"\\]{0,99}"|-?\d{1,18}(?![\d.eE]))?""")


class OpenRequests:
    """The open requests of a connection, and the reader of their answers."""

    def __init__(self) -> None:
        self._open: dict[Any, tuple[str, str]] = {}
        self._last = -1
        self._noted: int | None = None

    def sent(self, number: Any, method: str | None, params: Mapping[str, Any] | None) -> None:
        """Note a message to the server."""
        params = params or {}
        if number is None:
            self._noted = self._last
            if method == "notifications/cancelled":
                self._open.pop(params.get("requestId"), None)
        elif method is not None:
            self._open[number] = method, (params.get("_meta") or {}).get(_VERSION, _HANDSHAKE)
            self._last = max(self._last, number if isinstance(number, int) else -1)

    def read(self, data: bytes | str, number: Any = None) -> list[dict[str, Any]]:
        """Return a text's messages, as the package accepts them.

        Text that is no JSON, and JSON that is no message, is skipped with a line in the log: programs print such lines.
        An answer that names no request (truncated before its id, an id of a wrong type) is that of the only open one;
        with several open requests, it is skipped. If `number` is given, the text is a reply to this request, and its
        answer is that of the request, whatever it names.
        """
        messages: list[dict[str, Any]] = []
        is_skipped = True
        for document, text in _documents(data):
            if document is None:
                members = _top_members(text)
                is_answer = bool(members.keys() & {"jsonrpc", "result", "error"}) and "method" not in members
            else:
                members, is_answer = document, _is_answer(document)
            if is_answer:
                owner = number if number is not None else self._owner(members.get("id"))
                if owner is None and (owner := self._only(members)) is not None:
                    document = None
                messages += self._answered(owner, document, text)
            elif document is None or not _is_message(document):
                continue
            else:
                messages.append(document)
            is_skipped = False
        if is_skipped:
            log.warning("an MCP server has sent something that is not a message of the protocol; it is skipped")
        return messages

    def read_reply(self, data: bytes | str, number: Any) -> list[dict[str, Any]]:
        """Return the messages in a reply, which ends its request."""
        return [*self.read(data, number), *self._unreadable(number, _text(data))]

    def _answered(self, number: Any, answer: dict[str, Any] | None, text: str) -> Iterator[dict[str, Any]]:
        """Yield the answer of a request; None stands for an unparsed one."""
        if number not in self._open:
            return
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
        if self._noted is not None and number > self._noted:
            self._noted = None

    def _owner(self, named: Any) -> Any:
        """Return the open request that an id names, or None."""
        if isinstance(named, str) and named.isascii() and named.removeprefix("-").isdigit() and len(named) < _SHOWN:
            named = int(named)
        if isinstance(named, bool) or not isinstance(named, int | float | str):
            return None
        return next((number for number in self._open if number == named), None)

    def _only(self, members: Mapping[str, Any]) -> Any:
        """Return the only open request, for an answer that names none.

        Returns None for a late answer, and for an error after a notification, which some servers answer.
        """
        named = members.get("id")
        is_late = isinstance(named, int) and not isinstance(named, bool) and 0 <= named <= self._last
        if is_late or len(self._open) != 1 or ("error" in members and self._noted is not None):
            return None
        return next(iter(self._open))

    def _unreadable(self, number: Any, text: str) -> Iterator[dict[str, Any]]:
        if self._open.pop(number, None) is not None:
            error = {"code": _PARSE_ERROR, "message": UNREADABLE + repr(text[:_SHOWN])}
            yield {"jsonrpc": "2.0", "id": number, "error": error}


def _text(data: bytes | str) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


def _documents(data: bytes | str) -> Iterator[tuple[Any, str]]:
    """Yield each JSON document of a text, with its text.

    None stands for a document that cannot be parsed. What UTF-8 cannot carry becomes U+FFFD.
    """
    try:
        whole = from_json(data)
    except ValueError:
        pass
    else:
        for each in whole if isinstance(whole, list) else [whole]:
            yield each, json.dumps(each, ensure_ascii=False, default=str)
        return
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_distinct)
    text = _text(data).lstrip(_BETWEEN)
    while _START.match(text):
        try:
            document, end = decoder.raw_decode(text)
            document = from_json(_HALF.sub("\ufffd", json.dumps(document, ensure_ascii=False)))
        except (ValueError, RecursionError):
            following = _NEXT.search(text, 1)
            document, end = None, following.start() if following else len(text)
        yield document, text[:end]
        text = text[end:].lstrip(_BETWEEN)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise ValueError if half emojis distinguish keys."""
    document = dict(pairs)
    if len({_HALF.sub("\ufffd", name) for name in document}) < len(document):
        raise ValueError
    return document


def _top_members(text: str) -> dict[str, Any]:
    """Return a broken object's members; of values, only short ones."""
    found: dict[str, Any] = {}
    depth = 0
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


def _is_message(document: Any) -> bool:
    """Return whether a document is a request or notification of the server."""
    try:
        jsonrpc_message_adapter.validate_python(document, by_name=False)
    except ValidationError:
        return False
    return True


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
