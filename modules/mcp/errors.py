"""What goes wrong between a client and a server; in a run, tools tell the model of it and the run goes on."""

from collections.abc import Generator
from contextlib import contextmanager

from ...errors import ExternalError


class MCPConnectionError(ExternalError, ConnectionError):
    """There is no connection to `server`, and none could be made; what was to be sent was not."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"MCP server {server!r}: {why}")
        self.server = server


class MCPAuthRequiredError(MCPConnectionError):
    """The server wants somebody to log in; `connect(interactive=True)` lets a person do so."""


class MCPDisconnectedError(ExternalError, RuntimeError):
    """A tool of a client that is not connected, or was disconnected, was called."""


class MCPUnknownEffectError(MCPConnectionError):
    """The connection was lost during a call: nobody knows whether the server carried it out. It was not sent again."""


class MCPTimeoutError(ExternalError, TimeoutError):
    """A server did not answer a call in time; it was told to give it up, and may have carried it out."""


class MCPProtocolError(ExternalError):
    """A server refused a request, or answered what is no answer; `code` is JSON-RPC's, if there was one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class MCPUnavailableError(ExternalError, ImportError):
    """The package `mcp` is not installed."""


@contextmanager
def needs_mcp() -> Generator[None]:
    """Says what to install, where the package `mcp` is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types", "httpx2"):
            raise
        raise MCPUnavailableError('MCP needs the package `mcp`: pip install "refold[agent]"') from error
