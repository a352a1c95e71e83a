"""The tools that a server lists, page by page, and the names they are known by."""

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from mcp import Client
from mcp.types import Tool as ServerTool

from ..agent.tools import Tool
from .short_names import with_digest

log = logging.getLogger("refold")
MOST_PAGES = 1_000
_MOST_NAME = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


async def listed(client: Client, server: str) -> list[ServerTool]:
    """All tools of a server; of those with one name the first. A list without end is cut off, and the log says so."""
    found: dict[str, ServerTool] = {}
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        for tool in page.tools:
            if found.setdefault(tool.name, tool) is not tool:
                log.warning("MCP server %r lists %r twice; the first is taken", server, tool.name)
        cursor = page.next_cursor
        if cursor is None:
            return list(found.values())
        if cursor in seen:
            break
        seen.add(cursor)
    log.warning("MCP server %r lists its tools without end; %d are taken", server, len(found))
    return list(found.values())


def is_idempotent(tool: ServerTool) -> bool:
    """Whether the server says that calling the tool twice does no more than calling it once; reading does nothing."""
    hints = tool.annotations
    return hints is not None and bool(hints.idempotent_hint or hints.read_only_hint)


def as_tools(listed: Iterable[ServerTool], call_of: Callable[[ServerTool], Callable[..., Any]]) -> list[Tool[..., Any]]:
    """Tools of ours for those of a server. A name that models do not take is changed until they do."""
    made: dict[str, Tool[..., Any]] = {}
    for tool in listed:
        name = _name(tool.name)
        if name in made:
            name = with_digest(name, _MOST_NAME, tool.name)
        made[name] = Tool(
            name=name,
            description=tool.description or tool.title or "",
            parameters_schema={**{"type": "object", "properties": {}}, **tool.input_schema},
            fn=call_of(tool),
        )
    return list(made.values())


def _name(name: str) -> str:
    safe = _UNSAFE.sub("_", name)
    if not safe.strip("_"):
        return with_digest("tool", _MOST_NAME, name)
    return safe if len(safe) <= _MOST_NAME else with_digest(safe, _MOST_NAME, name)
