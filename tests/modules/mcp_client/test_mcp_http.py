"""Servers over HTTP, as real processes on loopback: streamable, SSE, dying, coming back, and refusing strangers."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from refold.modules.agent.chat.tool_calls import ToolCall
from refold.modules.mcp import HttpServerConfig, MCPClient, MCPConnectionError, MCPStatus, mcp

SERVER = str(Path(__file__).parent / "http_server.py")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def start(port: int, tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def serve(mode: str = "") -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:  # a process of its own, as only that has ended when its kill has
            command = [sys.executable, SERVER, str(port), str(tmp_path), mode]
            process = subprocess.Popen(command, stderr=log, stdout=log)
        started.append(process)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return process
            time.sleep(0.05)
        raise AssertionError("the server did not start")

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
