"""A walk through the files below a folder of the workspace."""

from collections.abc import Iterator

from ..workspace import Workspace
from .descent import Descent, FileEntry

IGNORED = frozenset(
    {
        ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache",
        ".ruff_cache", ".tox", ".idea", ".vscode", "dist", "build", "target", "coverage", ".hypothesis",
    }
)  # fmt: skip
"""Folders that are skipped unless a pattern names one."""


def walk(workspace: Workspace, path: str, cwd: str | None = None, *, everything: bool = False) -> Iterator[FileEntry]:
    """Yield the regular files below a folder in path order.

    Ignored folders are entered only if `everything` is true.
    """
    with workspace.folder(path, cwd) as top:
        yield from Descent(top, () if everything else IGNORED).entries()
