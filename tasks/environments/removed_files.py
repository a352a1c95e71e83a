"""The files that are lost when an environment is removed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ...traces.errors import TaskError
from .environment import Environment

Listing = Mapping[str, tuple[int, int]]
"""Size and time of change (ctime), in nanoseconds, of each file below a folder, by its relative path."""


def removable_files(environment: Environment | None) -> Listing | None:
    """Return the files of an environment that closing removes, or None.

    Nothing is read: a file is compared by its size and its time.
    """
    if environment is None or not getattr(environment, "is_temporary", False):
        return None
    try:
        return _listing(environment.root)
    except TaskError:  # a tool has closed it
        return None


def changed_files(before: Listing, after: Listing) -> list[str]:
    """Return the files that were made, changed or removed, sorted."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def newer_files(folder: Path, files: int, changed: int) -> list[str] | None:
    """Return the files that a killed run has changed.

    It began in a temporary folder with a number of files, none changed after a time in nanoseconds. Returns None if the
    folder is gone, or if only removed files differ: their names are unknown.
    """
    if folder.parent != Path(tempfile.gettempdir()).resolve() or not folder.is_dir():
        return None
    now = _listing(folder)
    newer = sorted(name for name, (_, at) in now.items() if at > changed)
    return newer if newer or len(now) == files else None


def _listing(root: Path) -> Listing:
    listing: dict[str, tuple[int, int]] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # a command that still runs may remove it
                facts = path.lstat()
                listing[path.relative_to(root).as_posix()] = facts.st_size, facts.st_ctime_ns
    return listing
