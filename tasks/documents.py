"""Documents that remember on which line each of their fields was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .json_values import Path, render_path


@dataclass(frozen=True)
class Document:
    """A parsed document: its `value`, and `lines()`, the 1-based line of each path in it (a key's, an item's)."""

    value: Any
    lines: Callable[[], dict[Path, int]]

    def line_of(self, path: Path) -> int:
        """The line of `path`, or of the nearest thing above it that was written."""
        lines = self.lines()
        while path not in lines and path:
            path = path[:-1]
        return lines[path]


class UnreadableError(Exception):
    """Text that is no document: told with line and field, and turned into a `TaskFileError` by the loader."""

    def __init__(self, line: int, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.line = line
        self.message = message
        in_task = path[1:] if path and isinstance(path[0], int) else path  # an index is that of the task in its list
        self.field = render_path(in_task) or None
