"""Several servers as one toolset, each in its own namespace, and none that keeps the others from being there."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import anyio
from pydantic import PrivateAttr

from ..agent.tools import Tool, Toolset, WireNameError
from ..agent.tools.names import MAX_WIRE_NAME, wire_name
from .client import MCPClient
from .configs import ServerConfig
from .short_names import with_digest

log = logging.getLogger("refold")
_ROOM = 10
"""Characters that each namespace is left, where a tool's own name would leave it none."""


class MCPServers(Toolset):
    """The tools of several servers, to be given to an Agent as one of its tools: `MCPServers({"time": config, ...})`.

    They are connected when it is entered, as an Agent does around a run, all at once. The tools of each have the
    server's name as their namespace, so that no two are the same to a model. A server that cannot be reached has no
    tools; its client's `status` and the log say why, and the others are there. `namespace` goes before the servers'
    names; `variables` are those of MCPClient, for servers that are given as configs. A tool's name that is too long
    behind them is cut, and ends in a digest of all of it. Raises WireNameError for servers' names that are none to a
    model, or one.

    Between runs it has the tools of the last one, so that a run can be verified without its servers.
    """

    _clients: dict[str, MCPClient] = PrivateAttr(default_factory=dict)
    _namespace: tuple[str, ...] = PrivateAttr(default=())
    _seen: dict[str, list[Tool[..., Any]]] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        servers: Mapping[str, ServerConfig | MCPClient],
        *,
        log_folder: Path | None = None,
        namespace: tuple[str, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._namespace = namespace
        _check_names(servers, namespace)
        for name, server in servers.items():
            path = None if log_folder is None else log_folder / f"{name}.log"
            if not isinstance(server, MCPClient):
                server = MCPClient.from_config(server, log_path=path, name=name, variables=variables)
            self._clients[name] = server

    @property
    def clients(self) -> dict[str, MCPClient]:
        """The clients, by the servers' names."""
        return dict(self._clients)

    def get_tools(self, *, variant: str | None = None) -> list[Tool[..., Any]]:
        """The tools of all servers that are connected; where it is not entered, of those that were."""
        found = []
        for name, client in self._clients.items():
            for tool in client.tools or self._seen.get(name, []):
                tool.source, tool.namespace = "mcp", (*self._namespace, name)
                found.append(_fitting(tool))
        return found

    async def __aenter__(self) -> Self:
        self._seen.clear()
        async with anyio.create_task_group() as tg:
            for name, client in self._clients.items():
                tg.start_soon(self._enter, name, client)
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._seen = {name: list(client.tools) for name, client in self._clients.items()}
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tg:
                for client in self._clients.values():
                    if client._entered:
                        tg.start_soon(client.__aexit__, None, None, None)

    async def _enter(self, name: str, client: MCPClient) -> None:
        try:
            await client.__aenter__()
        except Exception as error:  # noqa: BLE001 - one server must not keep the others away
            log.warning("MCP server %r has no tools to offer: %s", name, client.error or error)


def _check_names(servers: Iterable[str], namespace: tuple[str, ...]) -> None:
    seen: dict[str, str] = {}
    for name in servers:
        wire = wire_name("x", (*namespace, name))
        if seen.setdefault(wire, name) != name:
            raise WireNameError(f"the servers {seen[wire]!r} and {name!r} would be one to a model", "x", (name,))


def _fitting(tool: Tool[..., Any]) -> Tool[..., Any]:
    """The tool under a name that leaves room for its namespace."""
    if len(tool.name) + 3 * len(tool.namespace) <= MAX_WIRE_NAME:
        return tool
    return tool.with_(name=with_digest(tool.name, MAX_WIRE_NAME - _ROOM * len(tool.namespace)))
