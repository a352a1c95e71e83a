"""Protection of guarded files in a sandbox with a writable workspace."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .....engine import trace_home
from ...files.paths.guarded import guarded_folders, set_aside
from ...files.workspace import Workspace

_STORED, _STORED_AS = (".trace.jsonl", ".branches", ".blobs"), ("sets.sqlite", ".refold-index")
"""The ends and beginnings of names in a store that is a folder."""


@dataclass(frozen=True)
class Guard:
    """A path mounted on itself, so that nothing can replace it."""

    path: Path
    writable: bool


@dataclass
class Guards:
    """Mounts over a workspace, outermost first, and `notes` on disabled paths."""

    mounts: list[Guard] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def guarded(workspace: Workspace) -> Iterator[Guards]:
    """Guard a workspace while a command runs, unless its guard is off.

    Existing guarded paths must be mounted read-only. Guarded paths that the command makes are disabled after it has
    ended.
    """
    if not workspace.guard:
        yield Guards()
        return
    before = guarded_folders(workspace.root) | stored_in(workspace.root)
    guards = Guards(_mounts(workspace.root, before))
    try:
        yield guards
    finally:
        for path in set_aside(sorted(guarded_folders(workspace.root) - before)):
            guards.notes.append(
                f"[{path.relative_to(workspace.root)} would be run as code outside the sandbox, and was made "
                "unusable; Workspace(root, guard=False) lets it be]"
            )


def stored_in(root: Path) -> set[Path]:
    """Return the paths in a workspace that keep the run's trace.

    Those of other runs in the same store are included.
    """
    home = trace_home()
    if home is None or not home.is_relative_to(root):
        return set()
    if home == root:
        return {each for each in root.iterdir() if each.name.endswith(_STORED) or each.name.startswith(_STORED_AS)}
    beside = (home.with_name(f"{home.name}{end}") for end in ("", "-wal", "-shm", "-journal"))
    return {each for each in beside if each.exists()}


def _mounts(root: Path, paths: Collection[Path]) -> list[Guard]:
    """Return the guarded paths, read-only, and the folders above them.

    A folder that contains a mount can be renamed and replaced; a folder that is itself a mount cannot.
    """
    outermost = [path for path in paths if not any(each in paths for each in path.parents)]
    above = {each for path in outermost for each in path.parents if each != root and each.is_relative_to(root)}
    found = [*(Guard(path, writable=True) for path in above), *(Guard(path, writable=False) for path in outermost)]
    return sorted(found, key=lambda each: each.path.parts)
