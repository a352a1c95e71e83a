"""Reads HTTP answers of OpenAI's API before lossy client code does.

The Assembler of the current request gets the documents unchanged. The client gets the minimum that it accepts: plain
text, a known finish reason, and one document or a stream of documents, as requested.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from ..errors import TransientGeneratorError
from ..generation import Delta
from .assembler import Assembler
from .provider_errors import provider_error_of

LARGEST = 64 * 1024 * 1024
"""The largest number of bytes of a whole answer, of an error's body, and of an event of a stream."""
_SHOWN = 200
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""The prefixes of an event stream's lines."""
_HTML = ("<!doctype", "<html", "<head", "<body")

Show = Callable[[Delta], None]


class Wire:
    """One request: its answer, and whether the answer is complete."""

    def __init__(self, show: Show | None = None) -> None:
        self.answer = Assembler()
        self.is_read = False
        """Whether a response has arrived here."""
        self.is_over = False
        self._show = show
        self._responses: list[Any] = []

    def opened(self, response: Any) -> None:
        """Remember a response that `aclose` closes."""
        self.is_read = True
        self._responses.append(response)

    async def aclose(self) -> None:
        """Close the responses.

        Code that is cut off between a response and its first piece never closes it, and its connection is lost.
        """
        for response in self._responses:
            await response.aclose()

    def take(self, document: Any) -> None:
        """Read a document and show its pieces."""
        for piece in self.answer.add(document):
            if self._show is not None:
                self._show(piece)
        self.is_over = self.is_over or self.answer.finish is not None


_wire: ContextVar[Wire | None] = ContextVar("refold_wire", default=None)


@asynccontextmanager
async def reading(wire: Wire) -> AsyncIterator[Wire]:
    """Let `wire` read the answers of requests inside the block.

    Responses are closed at its end.
    """
    token = _wire.set(wire)
    try:
        yield wire
    finally:
        _wire.reset(token)
        await wire.aclose()


def client_class(base: Any) -> Any:
    """Return a subclass of `base`, openai's HTTP client, that reads answers.

    Which HTTP library that client belongs to depends on the release of openai, so none is named here.
    """

    class WireClient(base):  # type: ignore[misc]
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            wire = _wire.get()
            if wire is None or not request.url.path.endswith("/chat/completions"):
                return await super().send(request, stream=stream, **options)
            response = await super().send(request, stream=True, **options)
            wire.opened(response)
            headers = {name: value for name, value in response.headers.items() if name not in _OF_BODY}
            if response.status_code != 200:
                body: Any = await _read(response)
            else:
                headers["content-type"] = "text/event-stream" if stream else "application/json"
                body = _stream(response, wire) if stream else _whole(await _read(response), wire)
            status, extensions = response.status_code, response.extensions
            made = type(response)
            return made(status, headers=headers, content=body, request=request, extensions=extensions)

    return WireClient


_OF_BODY = ("content-encoding", "content-length", "transfer-encoding")


async def _read(response: Any) -> bytes:
    """Return a response's whole body.

    Raises TransientGeneratorError if it is too long.
    """
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        _refuse_longer(body)
    return bytes(body)


def _refuse_longer(data: bytearray) -> None:
    if len(data) > LARGEST:
        told = f"the server's answer has no end after {LARGEST // 2**20} MiB; is its address that of an API?"
        raise TransientGeneratorError(told, provider_error="NoAnswer")


def _whole(data: bytes, wire: Wire) -> bytes:
    """Read an answer and return one document for the client.

    Some servers stream even if one document was requested.
    """
    if data.lstrip().startswith(_FIELDS):
        for line in data.splitlines():
            _event(line, wire)
        return _least()
    _take(data, wire)
    return _least()


async def _stream(response: Any, wire: Wire) -> AsyncIterator[bytes]:
    """Read an answer and yield two events for the client.

    One comes at the answer's start, one at its end: the client's own work on an event takes several times as long as
    reading the event here. The client gets an end even if the answer has none, which `Wire.is_over` tells. Some servers
    send one document even if a stream was requested.
    """
    rest, is_stream, is_told = bytearray(), False, False
    try:
        async for data in response.aiter_bytes():
            rest += data
            if not is_stream:
                rest = rest.lstrip() if rest[:1].isspace() else rest
                is_stream = rest.startswith(_FIELDS)
            if is_stream and b"\n" in data:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    _event(line, wire)
                if not is_told:
                    is_told = True
                    yield _chunk("")
            _refuse_longer(rest)
        if is_stream:
            _event(rest, wire)
        else:
            _take(rest, wire)
            wire.is_over = True
        yield _chunk("", "stop") + b"data: [DONE]\n\n"
    finally:
        await response.aclose()


def _event(line: bytes | bytearray, wire: Wire) -> None:
    """Read one line of a stream."""
    line = line.strip()
    if not line.startswith(b"data:"):
        return
    data = line[5:].strip()
    if data == b"[DONE]":
        wire.is_over = wire.is_over or wire.answer.has_answer
        return
    _take(data, wire)


def _take(data: bytes | bytearray, wire: Wire) -> None:
    """Read a document; raises the provider's error if it is one."""
    try:
        document = _document(data)
        _refuse_error(document)
        wire.take(document)
    except RecursionError:
        told = "the server's answer nests too deeply to be read"
        raise TransientGeneratorError(told, provider_error="NoAnswer") from None


def _document(data: bytes | bytearray) -> Any:
    """Return the JSON value of the data.

    Raises TransientGeneratorError, which quotes the data, if the data is not JSON.
    """
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        text = " ".join(data.decode("utf-8", "replace").split())
        piece = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        kind = "an HTML page" if text.lower().startswith(_HTML) else "no JSON"
        what = "nothing" if not text else f"{kind}: {piece}"
        raise TransientGeneratorError(
            f"the server's answer is {what}; is its address that of an API?", provider_error="NoAnswer"
        ) from None


class _ProviderError(Exception):
    """A provider's error in place of an answer, with status 200."""

    def __init__(self, told: Any) -> None:
        document = told if isinstance(told, dict) else {"message": told}
        super().__init__(str(document.get("message") or told))
        code = document.get("code")
        self.status_code = code if isinstance(code, int) else None
        self.body = told


def _refuse_error(document: Any) -> None:
    if isinstance(document, dict) and document.get("error"):
        raise provider_error_of(_ProviderError(document["error"]))


def _chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    document = {**_ENVELOPE, "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: %b\n\n" % json.dumps(document).encode()


def _least() -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
    return json.dumps({**_ENVELOPE, "object": "chat.completion", "choices": [choice]}).encode()


_ENVELOPE = {"id": "read", "created": 0, "model": "read"}
