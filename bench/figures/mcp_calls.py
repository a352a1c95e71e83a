"""MCP: calls over stdio through our client, over package `mcp`'s."""

import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from statistics import median
from typing import Any

import anyio

from ..figure import Figure, Sizes, paired, spread

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("adder", log_level="ERROR")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

server.run("stdio")
"""
"""A typical server, made with the package `mcp`."""

NULL_SERVER = """
import json, sys
TOOL = {"name": "add", "inputSchema": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    params, answer = asked.get("params") or {}, None
    if asked["method"] == "initialize":
        server = {"name": "adder", "version": "1"}
        answer = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    elif asked["method"] == "tools/list":
        answer = {"tools": [TOOL]}
    elif asked["method"] == "tools/call":
        given = params["arguments"]
        answer = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}
    said = {"result": answer} if answer is not None else {"error": {"code": -32601, "message": "not known"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""
"""A server that takes almost no time, so that only the clients count; its protocol is from before 2026."""

_BLOCK = 10


def mcp_calls(sizes: Sizes) -> Iterator[Figure]:
    """Yield the median ratio of our client's calls to the bare client's.

    Each client has its own connection, in one process, and they take turns in blocks of calls. Our client answers a
    model's call: it reads and checks the arguments from JSON, and makes a message of the server's answer.
    """
    for key, server, goal, what in (
        ("mcp.calls", SERVER, 1.3, "a server of the package mcp"),
        ("mcp.calls.null", NULL_SERVER, None, "a server that takes no time"),
    ):
        ours, bare = anyio.run(_calls, server, sizes.runs)
        details = {"calls": sizes.runs, "ms_a_call": spread(ours, 1e3 / _BLOCK), "bare_ms": spread(bare, 1e3 / _BLOCK)}
        title = f"{sizes.runs:,} calls on one stdio connection over the bare client's: {what}"
        yield Figure(key, title, median(paired(ours, bare)), goal, details=details)


async def _calls(server: str, calls: int) -> tuple[list[float], list[float]]:
    """Return each block's seconds, by our tool and by the bare client."""
    from mcp import Client, StdioServerParameters

    from refold.modules.agent.chat.tool_calls import ToolCall
    from refold.modules.mcp import mcp

    arguments = ["-c", server]
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    async with mcp("stdio", command=sys.executable, args=arguments) as client, Client(parameters) as bare:
        (tool,) = client.tools

        async def ours(number: int) -> None:
            message, _ = await tool.handle_tool_call(ToolCall.of(f"c{number}", "add", {"a": number, "b": 1}))
            assert message.content == str(number + 1)

        async def theirs(number: int) -> None:
            result: Any = await bare.call_tool("add", {"a": number, "b": 1})
            assert result.content[0].text == str(number + 1)

        return await _in_turns(calls, ours, theirs)


async def _in_turns(
    calls: int, ours: Callable[[int], Awaitable[None]], theirs: Callable[[int], Awaitable[None]]
) -> tuple[list[float], list[float]]:
    times: tuple[list[float], list[float]] = ([], [])
    for start in range(-_BLOCK, calls, _BLOCK):
        sides = [(times[0], ours), (times[1], theirs)]
        for taken, call in sides if (start // _BLOCK) % 2 else reversed(sides):
            began = time.perf_counter()
            for number in range(start, min(start + _BLOCK, calls)):
                await call(number)
            taken.append(time.perf_counter() - began)
    return times[0][1:], times[1][1:]
