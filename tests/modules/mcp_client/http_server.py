"""A server made with the package `mcp`, over HTTP: `python http_server.py PORT FOLDER [sse|legacy]`."""

import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import MCPServer

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
server = MCPServer("web", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
async def slow() -> str:
    with (FOLDER / "calls").open("a") as file:
        file.write("slow\n")
    await anyio.sleep(60)
    return "done"


if __name__ == "__main__":
    server.run("sse" if "sse" in sys.argv else "streamable-http", port=PORT)
