"""Finds the entry that a path stands for without ever leaving a folder, whoever moves things about meanwhile.

A path is walked a component at a time. Each folder is opened relative to the one before it and never through a link
(openat(2) with O_NOFOLLOW); links are read and their targets walked in the same way, and `..` goes back to the folder
that was come from. So nothing is looked up twice by name, and between check and use there is nothing to exchange: it is
what RESOLVE_BENEATH of openat2(2) does, with links and absolute paths that lead inside allowed.
"""

import errno
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ....errors import OutsideWorkspaceError

MAX_LINKS = 40
"""How many links one path may lead through, as Linux has it."""

MAX_DEPTH = 200
"""How many folders deep a path may lead; each is open while it is walked."""

MAX_BYTES = 4096
"""How long a path may be (PATH_MAX)."""

FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

FILE_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


@dataclass(frozen=True)
class Spot:
    """An entry, there or not: `name` in the open folder `folder`; the root itself has no name.

    `path` is where that is, from the root on. `made` are the folders that were made on the way, outermost first.
    """

    folder: int
    name: str | None
    path: str
    made: list[tuple[int, str]] = field(default_factory=list)


def parts_of(path: str, root: Path, given: Path) -> list[str]:
    """The components of a path from the root on; raises OutsideWorkspaceError for an absolute path elsewhere.

    `given` is the root as it was named, before its links were resolved.
    """
    if "\0" in path:
        raise OutsideWorkspaceError(path, root, "has a NUL character")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise OutsideWorkspaceError(ascii(path), root, "is not a name that a file can have") from None
    if size > MAX_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), f"{path[:80]}...")
    if not path.startswith("/"):
        return _split(path)
    parts = _split(path)
    for base in (root, given):
        above = _split(str(base))
        if parts[: len(above)] == above:
            return parts[len(above) :]
    raise OutsideWorkspaceError(path, root, "leads out of the workspace")


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


@contextmanager
def spot_of(parts: Sequence[str], shown: str, root: Path, given: Path, *, make: bool = False) -> Iterator[Spot]:
    """The spot that components lead to, open until the block ends; `make` makes the folders that are missing.

    Raises:
        OutsideWorkspaceError: the path leads out, or its links go round.
        OSError: a folder on the way is not there, or is none.
    """
    with ExitStack() as open_folders:
        walk = _Walk(shown, root, given, open_folders, make)
        try:
            spot = walk.to(parts)
        except BaseException:
            walk.unmake()
            raise
        yield spot


class _Walk:
    """The folders that are open on the way to a spot."""

    def __init__(self, shown: str, root: Path, given: Path, stack: ExitStack, make: bool) -> None:
        self._shown, self._root, self._given, self._make = shown, root, given, make
        self._stack = stack
        self._fds = [self._opened(os.open(root, FOLDER_FLAGS & ~getattr(os, "O_NOFOLLOW", 0)))]
        self._names: list[str] = []
        self._made: list[tuple[int, str]] = []

    def unmake(self) -> None:
        """Removes the folders that were made, as they lead nowhere."""
        for folder, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder)

    def _opened(self, fd: int) -> int:
        self._stack.callback(os.close, fd)
        return fd

    def to(self, parts: Sequence[str]) -> Spot:
        todo, links = deque(parts), 0
        last: str | None = None
        while todo:
            part = todo.popleft()
            if last is not None:  # what was taken for the end is a folder on the way
                self._into(last)
                last = None
            if part == "..":
                if not self._names:
                    raise OutsideWorkspaceError(self._shown, self._root, "leads out of the workspace")
                self._names.pop()
                self._fds.pop()
                continue
            target = self._target(part)
            if target is None:
                last = part
                continue
            links += 1
            if links > MAX_LINKS:
                raise OutsideWorkspaceError(self._shown, self._root, "can't be followed: its links go round")
            todo.extendleft(reversed(self._led_to(target)))
        if last is None and self._names:
            last = self._names.pop()
            self._fds.pop()
        path = "/".join([*self._names, *([last] if last is not None else [])])
        return Spot(self._fds[-1], last, path or ".", self._made)

    def _target(self, part: str) -> str | None:
        """Where a link leads; None for what is no link, or not there."""
        try:
            return os.readlink(part, dir_fd=self._fds[-1])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise _named(error, self._shown) from None

    def _led_to(self, target: str) -> list[str]:
        try:
            parts = parts_of(target, self._root, self._given)
        except OutsideWorkspaceError:
            raise OutsideWorkspaceError(self._shown, self._root, "leads out of the workspace, by a link") from None
        if target.startswith("/"):
            del self._fds[1:], self._names[:]
        return parts

    def _into(self, part: str) -> None:
        folder = self._fds[-1]
        if len(self._names) >= MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, f"more than {MAX_DEPTH} folders deep", f"{self._shown[:80]}...")
        try:
            try:
                fd = os.open(part, FOLDER_FLAGS, dir_fd=folder)
            except FileNotFoundError:
                if not self._make:
                    raise
                os.mkdir(part, dir_fd=folder)
                self._made.append((folder, part))
                fd = os.open(part, FOLDER_FLAGS, dir_fd=folder)
        except OSError as error:
            raise _named(error, self._shown) from None
        self._fds.append(self._opened(fd))
        self._names.append(part)


def _named(error: OSError, shown: str) -> OSError:
    """The error with the path as it was asked for."""
    return type(error)(error.errno, error.strerror, shown)
