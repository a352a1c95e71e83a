"""Serves tools over the Model Context Protocol."""

import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ToolAnnotations
from mcp.types import Tool as ServerTool
from starlette.requests import Request

from ...engine import new_id
from ..agent.agent import Agent
from ..agent.chat.tool_calls import ToolCall
from ..agent.tools import Tool, Toolset, by_wire_name
from .results import result_of
from .stdin import ended_by_signals

_LOOK_SECONDS = 0.25


class ToolServer(MCPServer[Any]):
    """A server whose tools are refold's: what a model is told of them, and what they answer, is what it is in a run."""

    def __init__(self, items: list[Any], name: str, version: str = "") -> None:
        self._refold_tools = {wire: tool.with_(offload=False) for wire, tool in by_wire_name(items).items()}
        self._over_stdio = False
        super().__init__(name, version=version, lifespan=lambda server: self._entered(items))

    @property
    def wire_names(self) -> list[str]:
        """The names of the tools that are served."""
        return list(self._refold_tools)

    async def run_stdio_async(self) -> None:
        """Serves over standard input and output; what tools print goes to standard error."""
        self._over_stdio = True
        try:
            await super().run_stdio_async()
        finally:
            self._over_stdio = False

    @asynccontextmanager
    async def _entered(self, items: list[Any]) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._over_stdio:  # what is written to the descriptor is kept from clients; not so what is buffered
                stack.enter_context(redirect_stdout(sys.stderr))
            for item in _flat(items):
                if isinstance(item, Toolset) and hasattr(type(item), "__aenter__"):
                    await stack.enter_async_context(item)  # type: ignore[arg-type]
            yield

    async def list_tools(self) -> list[ServerTool]:
        """The tools, with the schemas that models see."""
        return [
            ServerTool(
                name=wire, description=tool.description, input_schema=tool.parameters_schema, annotations=_hints(tool)
            )
            for wire, tool in self._refold_tools.items()
        ]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:
        """Answers a call as in a run: arguments checked, errors caught as the tool says, long results cut."""
        tool = self._refold_tools.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r}; there are {', '.join(self._refold_tools)}")
        answered: list[CallToolResult | ToolError] = []
        async with anyio.create_task_group() as tg:
            if (request := _request_of(context)) is not None:
                tg.start_soon(_cancel_when_gone, request, tg.cancel_scope)
            try:
                message, _ = await tool.handle_tool_call(ToolCall.of(new_id(), name, arguments))
                answered.append(result_of(message))
            except Exception as error:  # noqa: BLE001 - told to the client
                answered.append(ToolError(f"{type(error).__name__}: {error}"))
            tg.cancel_scope.cancel()
        if not answered:
            raise ToolError("the client has hung up")
        if isinstance(answered[0], ToolError):
            raise answered[0]
        return answered[0]


def _request_of(context: Any) -> Request | None:
    """The HTTP request that a call came with; None over stdio."""
    try:
        request = context.request_context.request
    except (AttributeError, ValueError):  # there is no context, or it is of no request
        return None
    return request if isinstance(request, Request) else None


async def _cancel_when_gone(request: Request, scope: anyio.CancelScope) -> None:
    """Cancels a call whose client has hung up: nobody could be given its answer."""
    while not await request.is_disconnected():
        await anyio.sleep(_LOOK_SECONDS)
    scope.cancel()


def as_mcp(*tools: Any, name: str = "refold", version: str = "") -> ToolServer:
    """A server for tools: `as_mcp(add).run()` serves over stdio, `.run("streamable-http", port=...)` by HTTP.

    `tools` are Tools, Toolsets, functions, objects with tool methods, Agents for their tools, and lists of these.
    Toolsets that are context managers are entered while the server runs. A tool that asks to stop gives its message, as
    there is no run to stop. `name` and `version` are what clients are told of the server.

    Raises WireNameError where two have one name, ToolDefinitionError for a function that cannot be a tool.
    """
    return ToolServer([_tools_of(each) for each in _flat(list(tools))], name, version)


def serve_stdio(server: ToolServer) -> int:
    """Serves over standard input and output until the client ends, or SIGINT or SIGTERM comes; gives that signal, or 0.

    For the main thread of a process that does nothing else.
    """
    with ended_by_signals() as came:
        server.run("stdio")
    return came[0] if came else 0


def serve_http(server: ToolServer, bound: socket.socket) -> None:
    """Serves by streamable HTTP at /mcp, on a socket that is bound, until the process is told to end."""
    import uvicorn

    app = server.streamable_http_app(host=bound.getsockname()[0])
    config = uvicorn.Config(app, log_level="warning")
    anyio.run(lambda: uvicorn.Server(config).serve(sockets=[bound]))


def _flat(items: Any) -> list[Any]:
    return [one for item in items for one in _flat(item)] if isinstance(items, list | tuple) else [items]


def _tools_of(item: Any) -> Any:
    return list(item.tools) if isinstance(item, Agent) else item


def _hints(tool: Tool[..., Any]) -> ToolAnnotations | None:
    """Whether the tool's function is marked as one that may be called again."""
    marks = getattr(tool.fn, "__refold_marks__", None)
    return ToolAnnotations(idempotent_hint=True) if marks is not None and marks.idempotent else None
