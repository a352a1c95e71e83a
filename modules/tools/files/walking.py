"""Walks the files below a folder of the workspace, always from open folders and never through links."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .workspace import FILE_FLAGS, Workspace

IGNORED = frozenset(
    {
        ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".pytest_cache",
        ".ruff_cache", ".tox", ".idea", ".vscode", "dist", "build", "target", "coverage", ".hypothesis",
    }
)  # fmt: skip
"""Folders that are passed over, unless they are asked for by name."""


@dataclass(frozen=True)
class Entry:
    """A regular file below a folder: its path from that folder on, and its folder, open while it is looked at."""

    path: str
    name: str
    folder: int
    stat: os.stat_result

    def open(self) -> int | None:
        """A descriptor to read it from; None where it is no longer a regular file."""
        try:
            fd = os.open(self.name, FILE_FLAGS, dir_fd=self.folder)
        except OSError:
            return None
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or (found.st_dev, found.st_ino) != (self.stat.st_dev, self.stat.st_ino):
            os.close(fd)
            return None
        return fd


def walk(workspace: Workspace, path: str, cwd: str | None = None, *, everything: bool = False) -> Iterator[Entry]:
    """The regular files below a folder, in the order of their paths; `everything` enters ignored folders too."""
    with workspace.folder(path, cwd) as top:
        for place, folders, files, fd in os.fwalk(".", dir_fd=top):
            folders[:] = sorted(name for name in folders if everything or name not in IGNORED)
            prefix = place.removeprefix(".").removeprefix("/")
            for name in sorted(files):
                try:
                    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(found.st_mode):
                    yield Entry(f"{prefix}/{name}" if prefix else name, name, fd, found)


@lru_cache(maxsize=256)
def pattern_of(glob: str) -> re.Pattern[str]:
    """A glob for whole paths: `*` and `?` stay within a name, `**` goes through folders, `{a,b}` is either.

    Raises ValueError for one that makes no sense.
    """
    if not glob or "\0" in glob or glob.startswith("/") or ".." in glob.split("/"):
        raise ValueError(f"{glob!r} is no pattern for paths in a folder; take one such as **/*.py")
    clean = glob.removeprefix("./")
    return re.compile("|".join(f"(?:{_TOKEN.sub(_translated, each)})" for each in _alternatives(clean)), re.DOTALL)


_TOKEN = re.compile(r"(?:(?<=/)|(?<=^))\*\*/|\*\*|\*|\?|\[(!?)(\]?[^\]/]*)\]|.", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST = 256


def _translated(token: re.Match[str]) -> str:
    fixed = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token[0] in fixed:
        return fixed[token[0]]
    if token[2] is None:
        return re.escape(token[0])
    members = re.sub(r"([\\\[\]&~|^])", r"\\\1", token[2])
    return f"[{'^/' if token[1] else ''}{members}]"


def _alternatives(glob: str) -> list[str]:
    """The globs that braces stand for, at most 256 of them."""
    braces = _BRACES.search(glob)
    if braces is None:
        return [glob]
    found: list[str] = []
    for option in braces[1].split(","):
        found += _alternatives(glob[: braces.start()] + option + glob[braces.end() :])
        if len(found) > _MOST:
            raise ValueError(f"{glob!r:.80} stands for too many patterns")
    return found
