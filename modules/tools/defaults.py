"""`default_tools`: all standard tools by their names."""

from collections.abc import Iterable
from typing import Any

from ..agent.tools import Tool, Toolset
from .commands import bash, python
from .fetching import fetch
from .files import apply_patch, delete_lines, edit_file, glob, grep, insert_lines, ls, multiedit, read, write
from .human import ask_user, confirm
from .memory import Memory
from .thinking import think, todo

_TOOLS: tuple[Tool[..., Any], ...] = (
    read, write, glob, grep, ls, edit_file, multiedit, delete_lines, insert_lines, apply_patch,
    bash, python, fetch, think, todo, ask_user, confirm,
)  # fmt: skip


def default_tools(
    *, additional_toolsets: Iterable[Toolset] | None = None, include_items: bool = False
) -> dict[str, Tool[..., Any] | Toolset]:
    """All standard tools, by name; a Memory of its own for each call of this, and the toolsets given, by theirs.

    Raises ValueError for `include_items`, whose tools need a platform that is not here, and for two of one name.
    """
    if include_items:
        raise ValueError("include_items asks for tools of a platform (report_item, ...), and none is here")
    found: dict[str, Tool[..., Any] | Toolset] = {each.name: each for each in _TOOLS}
    for toolset in (Memory(), *(additional_toolsets or ())):
        if toolset.name in found:
            raise ValueError(f"two tools have the name {toolset.name!r}")
        found[toolset.name] = toolset
    return found
