"""The tool `apply_patch`: changes several files by one patch."""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

from ...agent.tools import tool
from .atomic_change import Change, change_files, one_at_a_time
from .edit_place import look_alike, windows
from .patch_format import FilePatch, Hunk, PatchFormatError, read_patch
from .text import TextFile
from .workspace import Workspace, current_workspace

_PASSES: tuple[Callable[[str], str], ...] = (lambda line: line, str.rstrip, str.strip, look_alike)
_NEAR = 0.5
_UNIFIED = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)?( @@.*)?$")


@tool
def apply_patch(
    patch: Annotated[str, "The patch, from *** Begin Patch to *** End Patch"],
    *,
    cwd: Annotated[str | None, "Working directory"] = None,
) -> str:
    """Add, change, move and delete files by one patch, or none.

    The patch looks like this:

    *** Begin Patch
    *** Add File: path/new.py
    +every line of the new file after a +
    *** Update File: path/old.py
    *** Move to: path/renamed.py
    @@ class Thing:
     a line that stays
    -a line that goes
    +a line that comes
    *** Delete File: path/gone.py
    *** End Patch

    Give about three lines that stay around each change. If these are in several places, name a line above them after
    @@. Line numbers are not used. If any part does not fit, no file is changed.
    """
    parts = read_patch(patch)
    workspace = current_workspace()
    with one_at_a_time():
        planned = _Plan(workspace, cwd)
        for part in parts:
            planned.take(part)
        change_files(workspace, planned.changes, cwd)
    return "\n".join(["Applied the patch:", *planned.told])


class _Plan:
    """The changes of a patch, computed before any file is changed."""

    def __init__(self, workspace: Workspace, cwd: str | None) -> None:
        self.changes: list[Change] = []
        self.told: list[str] = []
        self._workspace = workspace
        self._cwd = cwd
        self._named: set[str] = set()

    def take(self, part: FilePatch) -> None:
        """Add one file's changes; raise PatchFormatError if they do not fit."""
        path = self._once(part.path)
        if part.kind == "add":
            text = "".join(f"{line}\n" for line in part.lines)
            self.changes.append(Change(part.path, text.encode("utf-8", "replace"), new=True))
            self.told.append(f"A {path}")
            return
        if part.kind == "delete":
            seen = self._workspace.read(part.path, self._cwd, limit=0)
            self.changes.append(Change(part.path, None, seen=seen))
            self.told.append(f"D {path}")
            return
        seen = self._workspace.read_whole(part.path, self._cwd)
        file = TextFile.of(seen.data, part.path)
        data = _patched(file, part).to_bytes() if part.hunks else seen.data
        if part.move_to is None:
            self.changes.append(Change(part.path, data, seen=seen))
            self.told.append(f"M {path}")
            return
        moved = self._once(part.move_to)
        self.changes.append(Change(part.move_to, data, new=True, mode=seen.stat.st_mode & 0o7777))
        self.changes.append(Change(part.path, None, seen=seen))
        self.told.append(f"R {path} -> {moved}")

    def _once(self, path: str) -> str:
        """Return the path relative to the workspace.

        Raises PatchFormatError for a path that the patch names twice.
        """
        try:
            with self._workspace.spot(path, self._cwd) as spot:
                where = spot.path
        except FileNotFoundError:  # its folder does not exist yet
            where = posixpath.normpath(path)
        if where in self._named:
            raise PatchFormatError(f"the patch names {where} twice; put all its hunks under one heading")
        self._named.add(where)
        return where


def _patched(file: TextFile, part: FilePatch) -> TextFile:
    """Return the file with all hunks applied from top to bottom."""
    text = file.text
    lines = text.split("\n")
    ended = lines[-1] == ""
    if ended:
        del lines[-1]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    places: list[tuple[int, int, str]] = []
    after = 0
    for number, hunk in enumerate(part.hunks, 1):
        if not hunk.lines:
            continue
        where = f"{part.path}, hunk {number}"
        at = _place(lines, hunk, after, where)
        old, new = hunk.old, _merged(hunk, lines[at : at + len(hunk.old)])
        after = at + len(old)
        if ended or after < len(lines):
            places.append((starts[at], starts[after], "".join(f"{line}\n" for line in new)))
        elif old:  # at the end of a file without a final line end, which gets none
            start = starts[at] if new or at == 0 else starts[at] - 1
            places.append((start, len(text), "\n".join(new)))
        else:
            places.append((len(text), len(text), "\n".join(["", *new])))
    return file.spliced(*places)


def _merged(hunk: Hunk, found: Sequence[str]) -> list[str]:
    """Return the new lines; kept lines are taken from the file."""
    merged: list[str] = []
    at = 0
    for sign, text in hunk.lines:
        if sign == "+":
            merged.append(text)
            continue
        if sign == " ":
            merged.append(found[at])
        at += 1
    return merged


def _place(lines: Sequence[str], hunk: Hunk, after: int, where: str) -> int:
    """Return the first line of a hunk.

    Raises PatchFormatError if there is no such place, or more than one.
    """
    for anchor in hunk.anchors:
        if not _UNIFIED.match(anchor.strip()):
            after = _anchored(lines, anchor, after, where) + 1
    old = hunk.old
    if not old:
        return after if hunk.anchors and not hunk.at_end else len(lines)
    for key in _PASSES:
        found = [at for at in windows(lines, old, key) if at >= after]
        if hunk.at_end:
            found = [at for at in found if at + len(old) == len(lines)]
        if len(found) > 1 and hunk.anchors:
            return found[0]
        if len(found) > 1:
            numbers = ", ".join(str(at + 1) for at in found[:5])
            raise PatchFormatError(
                f"{where}: its lines are in {len(found)} places (lines {numbers}); add lines that stay around it, or "
                "name a line above after @@"
            )
        if found:
            return found[0]
    near, likeness = _nearest(lines, old)
    hint = f"; the nearest are at line {near + 1}" if likeness >= _NEAR else ""
    first = next((text for text in old if text.strip()), old[0])
    raise PatchFormatError(f"{where}: its lines were not found (from {first!r:.80} on){hint}. Read the file")


def _anchored(lines: Sequence[str], anchor: str, after: int, where: str) -> int:
    for key in _PASSES:
        found = [at for at in windows(lines, [anchor], key) if at >= after]
        if found:
            return found[0]
    raise PatchFormatError(f"{where}: the file has no line {anchor!r:.80}, which should precede it")


def _nearest(lines: Sequence[str], old: Sequence[str]) -> tuple[int, float]:
    """Return the place and the likeness of the lines most like `old`.

    The likeness is difflib's quick ratio: twice the number of equal lines, in whatever order, by that of all lines. It
    is counted on from each position to the next one.
    """
    plain = [line.strip() for line in lines]
    wanted, there = Counter(line.strip() for line in old), Counter(plain[: len(old)])
    equal = (wanted & there).total()
    best = (0, 0.0)
    for at, first in enumerate(plain):
        end = min(at + len(old), len(plain))
        likeness = 2 * equal / (end - at + len(old))
        if likeness > best[1]:
            best = (at, likeness)
        equal -= there[first] <= wanted[first]
        there[first] -= 1
        if at + len(old) < len(plain):
            entering = plain[at + len(old)]
            there[entering] += 1
            equal += there[entering] <= wanted[entering]
    return best
