"""Makes one state from the bytes of a trace, parsing little.

To make state k, find the commit of step k by bisection, go back line by line to the nearest snapshot, and parse only
the lines in between that may carry a patch (`commit`, `resume`, `end`). Every line begins with `{"kind":"`, so the
first letter of the kind, ten bytes after the newline, is enough to skip the others. The patches are applied in place,
to a document that no other code holds.
"""

import contextlib
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import orjson

from ..errors import PatchError, TraceCorruptError, TraceError
from ..file.lines import Lines
from ..file.schema import DEPTH, fits_below, is_patch
from ..file.tail import find_end
from ..json_patch.apply import Operation, PlaceFold, collector_at_rest, copy_json
from ..json_patch.share import patched, pointers

COMMIT = b'\n{"kind":"commit",'
SNAPSHOT = b'{"kind":"snapshot",'
_BATCH = 32
_DULL = bytes(letter in b"hdiowb" for letter in range(256))
"""For each byte, true if kinds with this first letter carry neither a state nor a patch: header, decide, intent,
input, outcome, wait, branch."""
_PATCHING = (b'{"kind":"resume",', b'{"kind":"end",')
_EVENT = b'{"kind":"event",'
_STATE = b',"state":'
"""Part of a snapshot's line if the snapshot holds its state. Text cannot contain this: JSON escapes quotes."""


def count_commits(lines: Lines, stop: int | None = None) -> int:
    """Return the number of steps committed before byte `stop`, or in all."""
    at = lines.data.rfind(COMMIT, 0, lines.end if stop is None else stop)
    return 0 if at < 0 else lines.record_at(at + 1).step + 1


def commit_offset(lines: Lines, step: int) -> int:
    """Return the byte where a step's commit begins, found by bisection."""
    low, high = 0, lines.end
    while low < high:
        middle = (low + high) // 2
        at = lines.data.find(COMMIT, middle, min(high + len(COMMIT) - 1, lines.end))
        found = lines.record_at(at + 1).step if at >= 0 else step + 1
        if found == step:
            return at + 1
        if found < step:
            low = at + len(COMMIT)
        else:
            high = middle
    lines.check_chain()
    raise TraceCorruptError(f"the commit of step {step} is missing", lines.number(lines.end), path=lines.path)


def record_end(lines: Lines, digest: str) -> int | None:
    """Return the byte after the record with this hash, or None."""
    line_end = b',"hash":"%b"}\n' % digest.encode()
    at = lines.data.rfind(line_end, 0, lines.end)
    return None if at < 0 else at + len(line_end)


def plan_state(lines: Lines, step: int, stop: int | None = None) -> "Fold":
    """Return the fold that makes state `step`.

    The state is the one before the step's commit or, without a commit, after the last one. A trailing `end` record is
    left out. With `stop`, the trace is read as if it ended at that byte; it must have `step` commits before that byte.
    """
    if stop is None:
        if step < count_commits(lines):
            return Fold(lines, commit_offset(lines, step), step)
        stop = lines.end
    end = find_end(lines.data, stop)
    return Fold(lines, stop if end is None else end, step)


class Fold:
    """The lines that make one state: a snapshot and later patches.

    The lines end at byte `stop`, which begins a line. `step` is the number of commits before it; with fewer or more
    commits, the trace is corrupt. If the snapshot refers to a state of another run, the fold `begins_elsewhere`, and
    its caller passes this state as `base`.
    """

    def __init__(self, lines: Lines, stop: int, step: int) -> None:
        data, found, commits, newline = lines.data, array("Q"), 0, stop - 1
        rfind, dull = data.rfind, _DULL
        while newline > 0:
            end = newline
            newline = rfind(b"\n", 0, end)
            if dull[data[newline + 10]]:  # the first letter of the kind
                continue
            start = newline + 1
            if data.startswith(COMMIT[1:], start):
                commits += 1
                found.extend((end, start))
            elif data.startswith(_PATCHING, start):
                found.extend((end, start))
            elif data.startswith(SNAPSHOT, start):
                break
            elif not data.startswith(_EVENT, start):
                raise _corrupt(lines, start, stop, "the line does not have the form of a record")
        else:
            raise TraceError("the trace has no state: the run ended before init_state returned one")
        self._snapshot = lines.record_at(start)
        if self._snapshot.step + commits != step:
            reason = f"commits are missing between steps {self._snapshot.step} and {step}"
            raise _corrupt(lines, start, stop, reason)
        found.reverse()
        self._lines, self._start, self._stop, self._found = lines, start, stop, found
        self.begins_elsewhere = _STATE not in self._snapshot.raw
        self.copied = 0
        """How many pointers `run_sharing` has copied: its document shares all others with `base`."""

    def run(self, base: Any = None) -> Any:
        """Return the state as a new document, which shares nothing with `base`."""
        with collector_at_rest(), self._located(base):
            doc = copy_json(base) if self.begins_elsewhere else self._snapshot.load()["state"]
            for patches in self._batches():
                doc = fold_patches(doc, patches)
        return doc

    def run_sharing(self, base: Any) -> Any:
        """Return the state, folded from `base` and sharing its unchanged parts."""
        doc, self.copied = base, 0
        with self._located(base):
            for patch in chain.from_iterable(self._batches()):
                copies: list[Any] = []
                doc = patched(doc, patch, copies)
                self.copied += sum(map(pointers, copies))
        return doc

    def _batches(self) -> Iterator[list[list[dict[str, Any]]]]:
        places = iter(self._found)
        while batch := list(islice(zip(places, places, strict=True), _BATCH)):
            yield _patches(self._lines, batch)

    @contextlib.contextmanager
    def _located(self, base: Any) -> Iterator[None]:
        try:
            yield
        except PatchError as error:
            reason = "a patch does not fit the state before it"
            raise _corrupt(self._lines, self._start, self._stop, reason, base) from error


def fold_patches(doc: Any, patches: Iterable[Iterable[Operation]]) -> Any:
    """Apply patches one after another, in place, and return the document."""
    fold = PlaceFold()
    for patch in patches:
        doc = fold(doc, patch)
    return doc


def _patches(lines: Lines, places: list[tuple[int, int]]) -> list[list[dict[str, Any]]]:
    """Return the patches of these lines, parsed all at once.

    Only the text of the patches is parsed. In a commit, `patch` is followed by `observation`, so the text between the
    two members is cut out. A wrong cut cannot go unnoticed: no proper beginning of a JSON array is itself a JSON
    array, so parsing would fail. Then, and for lines of another form, the whole lines are parsed as records.
    """
    data, texts = lines.data, []
    for start, end in places:
        first = data.find(b"[", start, end)
        last = data.rfind(b'],"observation":', start, end) + 1
        if not last or data[first - 9 : first] != b',"patch":':
            break
        texts.append(data[first:last])
    else:
        try:
            patches: list[list[dict[str, Any]]] = orjson.loads(b"[" + b",".join(texts) + b"]")
        except orjson.JSONDecodeError:
            pass
        else:
            if all(map(_is_sound, patches, texts)):
                return patches
    return [lines.record_at(start).get("patch") or [] for start, _ in places]


def _is_sound(patch: Any, text: bytes) -> bool:
    """Return whether a patch would pass `Record.load`, without calling it."""
    high = text.count(b"[") + text.count(b"{") + text.count(b"/")
    return is_patch(patch) and (high < DEPTH or fits_below(patch))


def _corrupt(lines: Lines, start: int, stop: int, reason: str, base: Any = None) -> TraceError:
    """Return the error that names the bad line.

    It is the first line with a wrong hash, otherwise the first that cannot be folded. `start` is where the snapshot
    begins.
    """
    lines.check_chain()
    doc: Any = None
    number = first = lines.number(start)
    for number in range(first, lines.number(stop)):
        record = lines.record(number - 1)
        try:
            doc = record.get("state", base) if number == first else patched(doc, record.get("patch") or [])
        except PatchError:
            break
    return TraceCorruptError(reason, number, path=lines.path)
