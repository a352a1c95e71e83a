"""The files that are lost when an environment is removed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..errors import EnvironmentNotOpenError
from .environment import Environment

Listing = Mapping[str, tuple[int, int]]
"""Size and time of change, in nanoseconds, of each file below a folder, by its relative path."""


def removable_files(environment: Environment | None) -> Listing | None:
    """Return the files of an environment that closing removes, or None.

    Nothing is read: a file is compared by its size and its time.
    """
    if environment is None or not getattr(environment, "is_temporary", False):
        return None
    found: dict[str, tuple[int, int]] = {}
    try:
        root = environment.root
    except EnvironmentNotOpenError:  # a tool has closed it
        return None
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # a command that still runs may remove it
                facts = path.lstat()
                found[path.relative_to(root).as_posix()] = facts.st_size, facts.st_mtime_ns
    return found


def changed_files(before: Listing, after: Listing) -> list[str]:
    """Return the files that were made, changed or removed, sorted."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
