"""States out of bytes: find the nearest snapshot, parse only what carries a patch, apply in place."""

import contextlib
import gc
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from ..errors import PatchError, TraceCorruptError, TraceError
from ..file.lines import Lines
from ..file.schema import DEPTH, fits_below, is_patch
from ..file.tail import find_end
from ..json_patch.apply import Operation, copy_json, look, run_operation, split_pointer
from ..json_patch.share import patched, pointers

COMMIT = b'\n{"kind":"commit",'
SNAPSHOT = b'{"kind":"snapshot",'
_BATCH = 32
_DULL = bytes(letter in b"hdiowb" for letter in range(256))
"""Which first letters of a kind belong to records without a state or a patch (and to them alone)."""
_PATCHING = (b'{"kind":"resume",', b'{"kind":"end",')
_EVENT = b'{"kind":"event",'
_STATE = b',"state":'
"""What a snapshot holds as its own member unless it refers to a state elsewhere; JSON escapes quotes within text."""


def count_commits(lines: Lines, stop: int | None = None) -> int:
    """Give the number of steps committed before byte `stop`: one more than the last commit's step."""
    at = lines.data.rfind(COMMIT, 0, lines.end if stop is None else stop)
    return 0 if at < 0 else lines.record_at(at + 1).step + 1


def commit_offset(lines: Lines, step: int) -> int:
    """Give the byte where the commit of a step begins; the steps of commits rise, so a bisection finds it."""
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
    """Give the byte behind the record with this hash; None where the trace does not hold it."""
    line_end = b',"hash":"%b"}\n' % digest.encode()
    at = lines.data.rfind(line_end, 0, lines.end)
    return None if at < 0 else at + len(line_end)


def plan_state(lines: Lines, step: int, stop: int | None = None) -> "Fold":
    """Find what leads to state `step`: the document before its commit, or after the last one, without a trailing end.

    Where `stop` is given, the trace is read as it stood when it ended at that byte, with `step` commits.
    """
    if stop is None:
        if step < count_commits(lines):
            return Fold(lines, commit_offset(lines, step), step)
        stop = lines.end
    end = find_end(lines.data, stop)
    return Fold(lines, stop if end is None else end, step)


class Fold:
    """The way to the document that all patches before byte `stop` (the beginning of a line) lead to.

    `step` is how many commits stand before it: where there are fewer or more, the trace is corrupt. Where the fold
    `begins_elsewhere`, at a snapshot that refers to another run's state, that state is to be given to it.
    """

    def __init__(self, lines: Lines, stop: int, step: int) -> None:
        data, found, commits, newline = lines.data, list[tuple[int, int]](), 0, stop - 1
        rfind, dull = data.rfind, _DULL
        while newline > 0:
            end = newline
            newline = rfind(b"\n", 0, end)
            if dull[data[newline + 10]]:  # the kind's first letter
                continue
            start = newline + 1
            if data.startswith(COMMIT[1:], start):
                commits += 1
                found.append((start, end))
            elif data.startswith(_PATCHING, start):
                found.append((start, end))
            elif data.startswith(SNAPSHOT, start):
                break
            elif not data.startswith(_EVENT, start):
                raise _corrupt(lines, start, stop, "the line has not the form of a record")
        else:
            raise TraceError("the trace has no state: the run ended before init_state gave one")
        self._snapshot = lines.record_at(start)
        if self._snapshot.step + commits != step:
            reason = f"commits are missing between steps {self._snapshot.step} and {step}"
            raise _corrupt(lines, start, stop, reason)
        found.reverse()
        self._lines, self._start, self._stop, self._found = lines, start, stop, found
        self.begins_elsewhere = _STATE not in self._snapshot.raw
        self.copied = 0
        """How many pointers `run_sharing` has copied: at most so many does its document not share."""

    def run(self, base: Any = None) -> Any:
        """Give the document, one's own: it shares nothing with `base`."""
        with _collector_at_rest(), self._located(base):
            doc = copy_json(base) if self.begins_elsewhere else self._snapshot.load()["state"]
            for first in range(0, len(self._found), _BATCH):
                doc = fold_patches(doc, _patches(self._lines, self._found[first : first + _BATCH]))
        return doc

    def run_sharing(self, base: Any) -> Any:
        """Give a document that shares with `base` what the patches leave as it was; for a fold that begins there."""
        doc, self.copied = base, 0
        with self._located(base):
            for first in range(0, len(self._found), _BATCH):
                for patch in _patches(self._lines, self._found[first : first + _BATCH]):
                    copies: list[Any] = []
                    doc = patched(doc, patch, copies)
                    self.copied += sum(map(pointers, copies))
        return doc

    @contextlib.contextmanager
    def _located(self, base: Any) -> Iterator[None]:
        try:
            yield
        except PatchError as error:
            reason = "a patch does not fit the state before it"
            raise _corrupt(self._lines, self._start, self._stop, reason, base) from error


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """JSON has no cycles; the collector would only walk what is being built, for a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def fold_patches(doc: Any, patches: Iterable[Iterable[Operation]]) -> Any:
    """Apply patches one after another, in place; their values become part of the document.

    The containers that paths lead to are remembered, until an operation may have moved them.
    """
    places: dict[str, tuple[Any, str]] = {}
    for patch in patches:
        for op in patch:
            path = op["path"]
            place = places.get(path)
            if place is None:
                head, slash, last = path.rpartition("/")
                parent = look(doc, split_pointer(head)) if slash and "~" not in last else None
                place = places[path] = (parent, last)
            parent, last = place
            if type(parent) is dict:
                kind = op["op"]
                old = parent.get(last, parent)
                if kind == "add" or (kind == "replace" and old is not parent):
                    parent[last] = op["value"]
                    if type(old) is dict or type(old) is list:
                        places.clear()
                    continue
            elif last == "-" and type(parent) is list and op["op"] == "add":
                parent.append(op["value"])
                continue
            places.clear()
            doc = run_operation(doc, op, None, False)
    return doc


def _patches(lines: Lines, places: Iterable[tuple[int, int]]) -> list[list[dict[str, Any]]]:
    """Parse the patches of these lines, all in one go.

    A patch is followed by the observation, so its text is cut out between the two members. No proper beginning of a
    JSON array is a JSON array: where the cut was wrong, parsing fails, and the lines are parsed whole, as records.
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
    """Tell whether it is what `Record.load` takes for a patch."""
    high = text.count(b"[") + text.count(b"{") + text.count(b"/")
    return is_patch(patch) and (high < DEPTH or fits_below(patch))


def _corrupt(lines: Lines, start: int, stop: int, reason: str, base: Any = None) -> TraceError:
    """Find the bad line: in the chain, else the first from `start`, a snapshot's place, that can't be folded."""
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
