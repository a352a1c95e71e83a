"""Servers over HTTP, as real processes on loopback: streamable, SSE, dying, coming back, and refusing strangers."""

import gzip
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from held_port import held_port, wait_until_listening

from refold.modules.agent import ToolCall
from refold.modules.mcp import HttpServerConfig, MCPClient, MCPConnectionError, MCPStatus, mcp

SERVER = str(Path(__file__).parent / "http_server.py")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture
def start(port: int, tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def serve(mode: str = "") -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:  # a process of its own, as only that has ended when its kill has
            command = [sys.executable, SERVER, str(port), str(tmp_path), mode]
            process = subprocess.Popen(command, stderr=log, stdout=log)
        started.append(process)
        wait_until_listening(process, port, tmp_path / "log")
        return process

    yield serve
    for process in started:
        process.kill()
        process.wait()


async def call(client: MCPClient, name: str, **arguments: Any) -> Any:
    tool = next(tool for tool in client.tools if tool.name == name)
    message, _ = await tool.handle_tool_call(ToolCall.of("c1", name, arguments))
    return message


async def test_streamable_http_is_called_killed_and_found_again(start: Start, port: int, tmp_path: Path) -> None:
    process = start()
    config = HttpServerConfig(url=f"http://127.0.0.1:{port}/mcp", headers={"x-test": "1"})
    async with MCPClient.from_config(config) as client:
        assert client.transport == "streamable-http"
        assert [tool.name for tool in client.tools] == ["add", "slow"]
        assert (client.recent_stderr, client.log_path) == ([], None)
        assert (await call(client, "add", a=1, b=2)).content == "3"
        messages: list[Any] = []

        async def one() -> None:
            messages.append(await call(client, "slow"))

        async with anyio.create_task_group() as tg:
            tg.start_soon(one)
            while not (tmp_path / "calls").exists():
                await anyio.sleep(0.02)
            process.kill()
        assert messages[0].metadata["error_type"] == "MCPUnknownEffectError"
        assert (await call(client, "add", a=1, b=2)).metadata["error_type"] == "MCPConnectionError"
        assert client.status is MCPStatus.FAILED
        process.wait()
        process = start()
        assert (await call(client, "add", a=2, b=2)).content == "4"
        process.kill()
        process.wait()
        start()
        assert (await call(client, "add", a=3, b=2)).content == "5"
    assert (tmp_path / "calls").read_text() == "slow\n"


class Sessions(BaseHTTPRequestHandler):
    """A server of the protocol of 2025 whose sessions end: `calls` are those that it carried out."""

    protocol_version = "HTTP/1.1"
    calls: list[str]
    sessions: list[str]

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, session = message.get("method"), self.headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            self.answer(404, {"error": {"code": -32600, "message": "Session not found"}}, None)
        elif method == "initialize":
            self.sessions.append(f"s{len(self.calls)}")
            info = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
            self.answer(200, {"result": info}, message["id"])
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("cut", "forget")]
            self.answer(200, {"result": {"tools": tools}}, message["id"])
        elif method == "tools/call":
            name = message["params"]["name"]
            self.calls.append(name)
            if name == "cut":  # as the server of the package `mcp` does with a call under way
                error = {"code": -32603, "message": "Session terminated before the request completed"}
                self.answer(500, {"error": error}, None)
            else:
                self.sessions.clear()
                self.answer(200, {"result": {"content": [{"type": "text", "text": "done"}]}}, message["id"])
        elif "id" in message:
            self.answer(200, {"error": {"code": -32601, "message": "Method not found"}}, message.get("id"))
        else:
            self.answer(202, None, None)

    def do_GET(self) -> None:
        self.answer(405, None, None)

    do_DELETE = do_GET

    def answer(self, status: int, body: dict[str, Any] | None, number: Any) -> None:
        data = b"" if body is None else json.dumps({"jsonrpc": "2.0", "id": number, **body}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if self.sessions:
            self.send_header("mcp-session-id", self.sessions[-1])
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def ending_sessions(kind: type[Sessions] = Sessions) -> Iterator[tuple[str, list[str]]]:
    calls: list[str] = []
    handler = type("Handler", (kind,), {"calls": calls, "sessions": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp", calls
        finally:
            server.shutdown()
            thread.join()


async def test_a_call_that_is_cut_off_with_its_session_is_not_sent_again() -> None:
    with ending_sessions() as (url, calls):
        async with mcp("streamable-http", url=url) as client:
            message = await call(client, "cut")
            assert "Session terminated before the request completed" in str(message.content)
            assert calls == ["cut"]


async def test_a_call_in_a_session_that_the_server_has_forgotten_is_sent_in_a_new_one() -> None:
    with ending_sessions() as (url, calls):
        async with mcp("streamable-http", url=url) as client:
            assert [(await call(client, "forget")).content for _ in range(3)] == ["done"] * 3
            assert calls == ["forget"] * 3


class Talkative(Sessions):
    """A server whose answers are long, have no end, or are cut off, as the called tool says."""

    def do_POST(self) -> None:
        self.connection.settimeout(60)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.rfile = io.BytesIO(body)  # for the other class to read
        message = json.loads(body)
        if message.get("method") == "tools/list":
            tools = [
                {"name": name, "inputSchema": {"type": "object"}}
                for name in ("stream", "cut", "endless", "packed", "twice packed", "packed stream")
            ]
            self.answer(200, {"result": {"tools": tools}}, message["id"])
        elif message and message.get("method") != "tools/call":
            super().do_POST()
        else:
            name = message["params"]["name"] if message else "pings"
            self.calls.append(name)
            self.talk(name, message.get("id"))

    def end_headers(self) -> None:
        self.send_header("connection", "close")
        super().end_headers()

    def talk(self, name: str, number: Any) -> None:
        is_stream = name in ("stream", "cut", "pings", "packed stream")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        packings = {"packed": "gzip", "packed stream": "gzip", "twice packed": "gzip, GZIP", "stream": ""}
        packing = packings.get(name)  # an empty one is none
        if packing is not None:
            self.send_header("content-encoding", packing)
        self.end_headers()
        text = [{"type": "text", "text": "x" * 2_000_000}]
        message = json.dumps({"jsonrpc": "2.0", "id": number, "result": {"content": text}})
        if name == "stream":
            self.wfile.write(f"event: message\ndata: {message}\n\n".encode())
        elif name == "cut":
            self.wfile.write(b"event: message\ndata: {")
        else:
            packed = gzip.compress(b" " * 1_000_000)
            pieces = {
                "packed": packed,
                "twice packed": gzip.compress(packed * 50),
                "packed stream": gzip.compress(b":\n" * 500_000),
                "pings": b": still here\n\n",
            }
            with suppress(OSError):
                while True:
                    self.wfile.write(pieces.get(name, b" " * 100_000))
                    if name == "twice packed":
                        break


async def test_an_answer_of_any_length_arrives_or_is_told_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refold.modules.mcp.transports.DEFAULT_MAX_LINE_BYTES", 3_000_000)
    with ending_sessions(Talkative) as (url, calls):
        async with mcp("streamable-http", url=url) as client:
            assert calls == ["pings"], "the first question, whose answer has no end"
            assert len((await call(client, "stream")).content) > 30_000
            for name, told in (("cut", "ended without a response"), ("endless", "3,000,000"), ("packed", "65,536")):
                answer = str((await call(client, name)).content)
                assert "MCPUnknownEffectError" in answer
                assert told in answer
            assert [each for each in calls if each != "pings"] == ["stream", "cut", "endless", "packed"]


@pytest.mark.parametrize("name", ["twice packed", "packed stream"])
async def test_an_answer_that_may_unpack_without_bound_is_refused(name: str) -> None:
    with ending_sessions(Talkative) as (url, _):
        async with mcp("streamable-http", url=url, call_timeout=60) as client:
            answer = str((await call(client, name.replace(" ", "_"))).content)
            assert "MCPUnknownEffectError" in answer
            assert "packed (gzip" in answer


async def test_a_server_that_knows_sse_alone_is_spoken_to_by_it(start: Start, port: int) -> None:
    start("sse")
    async with mcp("streamable-http", url=f"http://127.0.0.1:{port}/sse") as client:
        assert (await call(client, "add", a=1, b=2)).content == "3"


async def test_a_server_that_is_not_there_is_named(port: int) -> None:
    client = mcp("streamable-http", url=f"http://127.0.0.1:{port}/mcp")
    with pytest.raises(MCPConnectionError, match="cannot be reached"):
        await client.connect()
    assert client.status is MCPStatus.FAILED
    assert str(port) in str(client.error)
