"""Servers in JSON, as `.mcp.json` has them: `{"mcpServers": {"time": {"command": "uvx", "args": [...]}}}`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...errors import RefoldError
from .configs import HttpServerConfig, OAuthConfig, ServerConfig, StdioServerConfig

_TRANSPORTS = {"command": ("stdio",), "url": ("http", "streamable-http", "streamable_http", "streamableHttp", "sse")}
_LEFT_ALONE = frozenset({"type", "transport", "disabled", "description", "name"})
_COMMAND: TypeAdapter[StdioServerConfig] = TypeAdapter(StdioServerConfig)
_URL: TypeAdapter[HttpServerConfig] = TypeAdapter(HttpServerConfig)


class ServerConfigError(RefoldError, ValueError):
    """What says how to reach a server says too little, too much, or something else; `server` is its name."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"MCP server {server!r}: {why}")
        self.server = server


def server_config(name: str, document: Any) -> ServerConfig:
    """The server of one entry: `command`, `args`, `env`, `cwd`, or `url`, `headers`, `oauth`; and the timeouts.

    `oauth` is true, or has `client_name` and `scope`. A transport that is named (`type`) must be that of what is
    given. Variables are left as they are written; MCPClient fills them in. Raises ServerConfigError.
    """
    if not isinstance(document, Mapping):
        raise ServerConfigError(name, f"it is a {type(document).__name__}; an object with `command` or `url` is needed")
    ways = [key for key in ("command", "url") if document.get(key)]
    if len(ways) != 1:
        raise ServerConfigError(name, "it has both `command` and `url`" if ways else "it has no `command` and no `url`")
    named = document.get("type", document.get("transport"))
    if named is not None and named not in _TRANSPORTS[ways[0]]:
        raise ServerConfigError(name, f"it has `{ways[0]}`, and its transport is said to be {named!r}")
    values = {key: value for key, value in document.items() if key not in _LEFT_ALONE}
    if values.get("oauth") is True:
        values["oauth"] = OAuthConfig()
    elif not values.get("oauth"):
        values.pop("oauth", None)
    known = StdioServerConfig if ways[0] == "command" else HttpServerConfig
    fields = known.__dataclass_fields__
    if unknown := [str(key) for key in values if key not in fields]:
        raise ServerConfigError(name, f"it has {', '.join(unknown)}; with `{ways[0]}` there are {', '.join(fields)}")
    try:
        return _COMMAND.validate_python(values) if ways[0] == "command" else _URL.validate_python(values)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False))
        raise ServerConfigError(name, told) from None


def read_servers(path: Path) -> dict[str, Any]:
    """The entries of a file, by the servers' names and as they are written, for `server_config`.

    Raises ServerConfigError for a file that is no JSON of that form, OSError for one that cannot be read.
    """
    try:
        document = json.loads(Path(path).read_text("utf-8-sig"))
    except ValueError as error:
        raise ServerConfigError(str(path), f"the file is no JSON: {error}") from None
    found = next((document[key] for key in ("mcpServers", "servers") if key in document), None) if document else None
    if not isinstance(found, dict):
        raise ServerConfigError(str(path), 'the file has no "mcpServers" with servers by name')
    return found
