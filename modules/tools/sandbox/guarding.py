"""What others run as code, kept as it is in a sandbox whose workspace is writable."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..files.guarded import guarded_folders, set_aside
from ..files.workspace import Workspace


@dataclass(frozen=True)
class Guard:
    """A path of the workspace that is mounted on itself, so that no folder of that name can take its place."""

    path: Path
    writable: bool


@dataclass
class Guards:
    """What to mount over a workspace, outermost first, and afterwards `notes` of what was set aside."""

    mounts: list[Guard] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def guarded(workspace: Workspace) -> Iterator[Guards]:
    """Guards a workspace while a command runs in it, unless it says otherwise.

    What is there is to be mounted read-only. What the command has made itself is set aside when it has ended.
    """
    if not workspace.guard:
        yield Guards()
        return
    before = guarded_folders(workspace.root)
    guards = Guards(_mounts(workspace.root, before))
    try:
        yield guards
    finally:
        for path in set_aside(sorted(guarded_folders(workspace.root) - before)):
            guards.notes.append(
                f"[{path.relative_to(workspace.root)} would be run as code outside of the sandbox, and was made "
                "unusable; Workspace(root, guard=False) lets it be]"
            )


def _mounts(root: Path, paths: Collection[Path]) -> list[Guard]:
    """What is guarded, read-only, and the folders above it.

    A folder with a mount in it can be renamed, and another made in its place; one that is a mount itself cannot.
    """
    outermost = [path for path in paths if not any(each in paths for each in path.parents)]
    above = {each for path in outermost for each in path.parents if each != root and each.is_relative_to(root)}
    found = [*(Guard(path, writable=True) for path in above), *(Guard(path, writable=False) for path in outermost)]
    return sorted(found, key=lambda each: each.path.parts)
