"""The folders of a workspace with certain names.

Only folders that have changed are read again.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

_NOT_SEARCHED = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Large folders without a user's own files."""
_SETTLED_NS = 50_000_000
_SETTLED_COARSE_NS = 2_500_000_000
"""The age, in nanoseconds, from which no later change can have the same time; on file systems that keep whole seconds,
the second one."""
_MOST = 8
"""The number of workspaces that are remembered."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A folder as it was read.

    `changed_at` is 0 if a later change could have the same time.
    """

    changed_at: int
    marked: frozenset[str]
    below: tuple[str, ...]


_known: OrderedDict[Path, dict[str, _Seen]] = OrderedDict()
_lock = Lock()


def marked_folders(root: Path, is_marked: Callable[[str], bool]) -> Mapping[Path, Set[str]]:
    """Return the folders that have marked names, with these names.

    Insides of repositories are left out. A folder is read again only if its time of change (st_ctime) differs; no
    program can set that time.
    """
    with _lock:
        before = _known.get(root, {})
    after: dict[str, _Seen] = {}
    todo = [str(root)]
    while todo:
        folder = todo.pop()
        try:
            changed_at = os.lstat(folder).st_ctime_ns
            seen = before.get(folder)
            if seen is None or seen.changed_at != changed_at:
                seen = _read(folder, changed_at, is_marked, is_root=not after)
        except OSError:
            continue
        after[folder] = seen
        todo += seen.below
    with _lock:
        _known[root] = after
        _known.move_to_end(root)
        while len(_known) > _MOST:
            _known.popitem(last=False)
    return {Path(folder): seen.marked for folder, seen in after.items() if seen.marked}


def _read(folder: str, changed_at: int, is_marked: Callable[[str], bool], *, is_root: bool) -> _Seen:
    age = time.time_ns() - changed_at
    is_settled = age > (_SETTLED_NS if changed_at % 1_000_000_000 else _SETTLED_COARSE_NS)
    with os.scandir(folder) as entries:
        names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    is_repository = not is_root and names.keys() >= {"HEAD", "objects", "refs"}
    below = [] if is_repository else [name for name, is_folder in names.items() if is_folder]
    return _Seen(
        changed_at if is_settled else 0,
        frozenset(filter(is_marked, names)),
        tuple(f"{folder}/{name}" for name in below if name not in _NOT_SEARCHED and name.casefold() != ".git"),
    )
