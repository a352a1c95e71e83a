"""A server on loopback that replies by a script, with OpenAI's API and Anthropic's: real HTTP, so that real code runs.

Requests to `/v1/messages` are answered as Anthropic does, all others as OpenAI.

with ModelServer(Says("hello"), Fails(429, headers={"retry-after": "1"}), Cuts()) as server:
    ...  # ask http://127.0.0.1:PORT/v1, which is server.url
server.requests  # what was asked
"""

import json
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    """One request as it came: its path, its headers in lower case, and its body."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    port: int = 0
    """The client's, one for each connection."""


@dataclass(frozen=True)
class Says:
    """An answer: text, then calls given as (name, arguments).

    `pause` is in seconds, before each piece of the answer; `piece` is a piece's length in a stream.
    """

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()
    reasoning: str = ""
    usage: Mapping[str, Any] | None = field(default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5})
    finish: str = ""
    pause: float = 0.0
    piece: int = 4
    model: str = ""
    signature: str = "signed"
    """That of the reasoning, in Anthropic's API."""
    is_left_open: bool = False
    """Whether a stream has no end after its mark of the end, as some proxies leave it."""


@dataclass(frozen=True)
class Fails:
    """An error as the API writes one, or `raw` text where it does not."""

    status: int
    message: str = "something is wrong"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | None = None


@dataclass(frozen=True)
class Cuts:
    """Breaks the connection: before any byte, or in the middle of what `says` would have been."""

    says: Says | None = None


@dataclass(frozen=True)
class Hangs:
    """Sends nothing for so many seconds, then closes; leaves earlier when the server is closed."""

    seconds: float = 30.0


@dataclass(frozen=True)
class Raw:
    """A body that is sent as it stands, with status 200."""

    body: str
    content_type: str = "application/json"


@dataclass(frozen=True)
class Either:
    """One reply to a request for a whole answer, another to one for a stream."""

    whole: "Reply"
    streamed: "Reply"


Reply = Says | Fails | Cuts | Hangs | Raw | Either


class ModelServer:
    """Gives one reply a request, in their order; the last one again and again if `repeat`. Use it in a `with`."""

    def __init__(self, *replies: Reply, repeat: bool = False, keep_alive: bool = True) -> None:
        self.replies = list(replies)
        self.repeat = repeat
        self.keep_alive = keep_alive
        self.hung_up = threading.Event()
        """Set when the server closes a connection that it announced to keep."""
        self.gone = threading.Event()
        """Set when a client closes its connection before its answer is whole."""
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """What goes into `api_base`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def next_reply(self, request: Request) -> Reply:
        """Notes the request and tells what it is answered with."""
        with self._lock:
            self.requests.append(request)
            if not self.replies:
                return Fails(500, "the script of this server is over")
            return self.replies[0] if self.repeat and len(self.replies) == 1 else self.replies.pop(0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of 5, Linux resets some of 20 connections that come at once
    owner: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing on stderr."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, body, self.client_address[1])
        reply = self.server.owner.next_reply(request)
        if isinstance(reply, Either):
            reply = reply.streamed if body.get("stream") else reply.whole
        if isinstance(reply, Fails):
            self._fail(reply)
        elif isinstance(reply, Raw):
            self._send(200, reply.body.encode(), {"content-type": reply.content_type})
        elif isinstance(reply, Hangs):
            self._hang(reply.seconds)
            self._cut()
        elif isinstance(reply, Cuts) and reply.says is None:
            self._cut()
        elif isinstance(reply, Either):
            raise AssertionError("an Either stands in no Either")
        elif body.get("stream"):
            self._stream(reply, request)
        else:
            self._whole(reply, request)
        if not self.server.owner.keep_alive:
            self.close_connection = True

    @property
    def _is_anthropic(self) -> bool:
        return self.path.endswith("/messages")

    def finish(self) -> None:
        super().finish()
        if not self.server.owner.keep_alive:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.server.owner.hung_up.set()

    def _hang(self, seconds: float) -> None:
        """Waits until the time is over, the server is closed, or the client goes away."""
        owner, deadline = self.server.owner, time.monotonic() + seconds
        while not owner.closing.wait(0.02) and time.monotonic() < deadline:
            if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                owner.gone.set()
                return

    def _fail(self, reply: Fails) -> None:
        error = {"message": reply.message, "type": "error", "param": None, "code": reply.code}
        document: dict[str, Any] = {"error": error}
        if self._is_anthropic:
            document = {"type": "error", "error": {"type": reply.code or "error", "message": reply.message}}
        text = reply.raw if reply.raw is not None else json.dumps(document)
        kind = "application/json" if reply.raw is None else "text/html"
        self._send(reply.status, text.encode(), {"content-type": kind, **reply.headers})

    def _whole(self, reply: Says | Cuts, request: Request) -> None:
        says = reply if isinstance(reply, Says) else reply.says
        assert says is not None
        document = _message(says, request) if self._is_anthropic else _completion(says, request)
        data = json.dumps(document).encode()
        time.sleep(says.pause)
        if isinstance(reply, Cuts):
            self._head(200, {"content-type": "application/json", "content-length": str(len(data))})
            self.wfile.write(data[: len(data) // 2])
            self._cut()
        else:
            self._send(200, data, {"content-type": "application/json"})

    def _stream(self, reply: Says | Cuts, request: Request) -> None:
        says = reply if isinstance(reply, Says) else reply.says
        assert says is not None
        chunks = _events(says, request) if self._is_anthropic else list(_chunks(says, request))
        if isinstance(reply, Cuts):
            chunks = chunks[: len(chunks) // 2]
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for chunk in chunks:
            time.sleep(says.pause)
            name = f"event: {chunk['type']}\n" if self._is_anthropic else ""
            self._chunk(f"{name}data: {json.dumps(chunk)}\n\n".encode())
        if isinstance(reply, Cuts):
            self._cut()
            return
        if not self._is_anthropic:
            self._chunk(b"data: [DONE]\n\n")
        if says.is_left_open:
            self._hang(250)
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        try:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        except OSError:
            self.server.owner.gone.set()
            raise

    def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        self._head(status, {**headers, "content-length": str(len(data))})
        self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _cut(self) -> None:
        """Resets the connection: the client sees it break, and not end."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def _completion(says: Says, request: Request) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": says.text or None}
    if says.reasoning:
        message["reasoning_content"] = says.reasoning
    if says.calls:
        message["tool_calls"] = [_call(i, *call) for i, call in enumerate(says.calls)]
    document = _envelope(says, request, "chat.completion")
    document["choices"] = [{"index": 0, "message": message, "finish_reason": _finish(says)}]
    if says.usage is not None:
        document["usage"] = _usage(says.usage)
    return document


def _message(says: Says, request: Request) -> dict[str, Any]:
    """A whole message of Anthropic's API."""
    content: list[dict[str, Any]] = []
    if says.reasoning:
        content.append({"type": "thinking", "thinking": says.reasoning, "signature": says.signature})
    if says.text:
        content.append({"type": "text", "text": says.text})
    for i, (name, arguments) in enumerate(says.calls):
        content.append({"type": "tool_use", "id": f"call_{i}", "name": name, "input": json.loads(arguments)})
    counts = says.usage or {}
    usage = {**counts, "input_tokens": counts.get("prompt_tokens", 0)}
    usage = {**usage, "output_tokens": counts.get("completion_tokens", 0)}
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_sequence": None},
        **{"model": says.model or request.body.get("model", "test"), "usage": usage},
        "stop_reason": says.finish or ("tool_use" if says.calls else "end_turn"),
    }


def _events(says: Says, request: Request) -> list[dict[str, Any]]:
    """The message as Anthropic streams it."""
    message = _message(says, request)
    usage = {"output_tokens": message["usage"].pop("output_tokens")}
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for i, block in enumerate(message["content"]):
        kind = block["type"]
        member = {"thinking": "thinking", "text": "text", "tool_use": "input"}[kind]
        first = {**block, member: {} if kind == "tool_use" else ""}
        first.pop("signature", None)
        events.append({"type": "content_block_start", "index": i, "content_block": first})
        if kind == "tool_use":
            text, delta = says.calls[int(block["id"][5:])][1], ("input_json_delta", "partial_json")
            text = "" if block["input"] == {} else text
        else:
            text, delta = block[member], (f"{kind}_delta", member)
        deltas = [{"type": delta[0], delta[1]: piece} for piece in _pieces(text, says.piece)]
        if kind == "thinking":
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        events += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": i})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]


def _call(index: int, name: str, arguments: str) -> dict[str, Any]:
    return {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _finish(says: Says) -> str:
    return says.finish or ("tool_calls" if says.calls else "stop")


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {"total_tokens": usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0), **usage}


def _envelope(says: Says, request: Request, kind: str) -> dict[str, Any]:
    model = says.model or request.body.get("model", "test")
    return {"id": "chatcmpl-1", "object": kind, "created": 1700000000, "model": model}


def _chunks(says: Says, request: Request) -> Sequence[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": word} for word in says.reasoning.split(" ") if word]
    deltas += [{"content": piece} for piece in _pieces(says.text, says.piece)]
    for i, (name, arguments) in enumerate(says.calls):
        start = {"index": i, "id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [start]})
        deltas += [{"tool_calls": [{"index": i, "function": {"arguments": p}}]} for p in _pieces(arguments, says.piece)]
    chunks = [_envelope(says, request, "chat.completion.chunk") for _ in deltas]
    for chunk, delta in zip(chunks, deltas, strict=True):
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
    last = _envelope(says, request, "chat.completion.chunk")
    last["choices"] = [{"index": 0, "delta": {}, "finish_reason": _finish(says)}]
    chunks.append(last)
    wanted = (request.body.get("stream_options") or {}).get("include_usage")
    if says.usage is not None and wanted:
        chunks.append({**_envelope(says, request, "chat.completion.chunk"), "choices": [], "usage": _usage(says.usage)})
    return chunks


def _pieces(text: str, length: int) -> list[str]:
    return [text[i : i + length] for i in range(0, len(text), length)]
