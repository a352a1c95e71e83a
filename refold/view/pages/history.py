"""The history of a path: each change of the value there.

A long run is read in parts: the part read is kept with the trace, and the next question continues there. Of a run that
grows, only the new part is read.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from ...errors import PatchError, TraceCorruptError
from ...traces.analysis.blame import Walk, is_missing
from ...traces.index.indexed import IndexedTrace
from ...traces.json_patch.apply import join_pointer
from .line_prefilter import candidates
from .nodes import Json, Nodes
from .values import tokens_of

_PAGE = 100
_STEPS = 10_000
_SHORT = 200
_KEPT = 4
"""How many histories of a trace are kept: each holds one member of its state."""
_CHANGED = (b'{"kind":"commit",', b'{"kind":"resume",', b'{"kind":"end",')
_LOOK = 64
"""After how many lines the clock is read."""


def history(trace: IndexedTrace, path: str, offset: int, seconds: float = float("inf")) -> Json:
    """Return the changes of the value at a path.

    A `*` in the path stands for any one member. The trace is read for about `seconds`; `searched` is the share read so
    far.
    """
    tokens = tokens_of(path)
    if offset:
        found = _History(tokens, offset)  # later pages are read from the beginning: nobody keeps all entries
        found.read(trace, float("inf"))
        return found.answer(trace, path)
    found = _kept(trace, path, tokens)
    with found.lock:
        try:
            found.read(trace, time.monotonic() + seconds)
        except Exception:
            _forget(trace, path)  # half of a patch may be applied
            raise
        return found.answer(trace, path)


_histories: WeakKeyDictionary[IndexedTrace, OrderedDict[str, "_History"]] = WeakKeyDictionary()
_keeping = threading.Lock()


def _kept(trace: IndexedTrace, path: str, tokens: list[str]) -> "_History":
    with _keeping:
        several = _histories.setdefault(trace, OrderedDict())
        found = several.setdefault(path, _History(tokens, 0))
        several.move_to_end(path)
        while len(several) > _KEPT:
            several.popitem(last=False)
        return found


def _forget(trace: IndexedTrace, path: str) -> None:
    with _keeping:
        _histories.get(trace, OrderedDict()).pop(path, None)


class _History:
    """The changes of one path, as far as the trace was read.

    Only the changes of the path's first member are folded, so that the rest of a large state costs nothing.
    """

    def __init__(self, tokens: list[str], offset: int) -> None:
        self.lock = threading.Lock()
        self._first = tokens[0] if tokens and tokens[0] not in ("*", "**") else None
        self._named = _Named(tokens)
        self._offset = offset
        self._walk = Walk(tokens)
        self._at: int | None = None
        self._steps: list[int] = []
        self._entries: list[Json] = []
        self._total = 0

    def answer(self, trace: IndexedTrace, path: str) -> Json:
        """Return the changes found."""
        end = trace.walk.offset if trace.is_complete else max(trace.walk.offset + 1, trace.file.size)
        searched = 1.0 if self._at is None or self._at >= end else self._at / end
        return {
            "path": path,
            "entries": list(self._entries),
            "steps": list(self._steps),
            "total": self._total,
            "searched": searched,
        }

    def read(self, trace: IndexedTrace, until: float) -> None:
        """Continue reading until a time, at most to the indexed end."""
        if self._at is None and not self._begin(trace):
            return
        assert self._at is not None
        stop = trace.walk.offset
        for number, (line, after) in enumerate(self._named.lines(trace, self._at, stop)):
            if line.startswith(_CHANGED):
                self._take(trace, line)
            self._at = after
            if number % _LOOK == _LOOK - 1 and time.monotonic() >= until:
                return
        self._at = stop

    def _begin(self, trace: IndexedTrace) -> bool:
        """Start at the first snapshot, and return whether there is one."""
        with trace.lock:
            rows = trace.query("SELECT stop FROM snapshots WHERE trace = :trace ORDER BY offset LIMIT 1")
            if not rows:
                return False
            ((begun,),) = rows
            document, _ = trace.folded(begun)
        first = self._first
        self._walk.doc = document if first is None else {name: each for name, each in document.items() if name == first}
        self._at = begun
        return True

    def _take(self, trace: IndexedTrace, line: bytes) -> None:
        record = trace.record(line)
        patch = record.get("patch") or []
        if self._first is not None:
            patch = [_only(op, self._first) for op in patch if self._named.touches(op["path"])]
        try:
            changed = self._walk.apply(patch)
        except PatchError as error:
            reason = f"the patch does not fit the state: {error}"
            raise TraceCorruptError(reason, record.seq + 1, path=trace.path) from None
        step = record.step
        for _, old, new in changed:
            if (not self._steps or self._steps[-1] != step) and len(self._steps) < _STEPS:
                self._steps.append(step)
            if self._offset <= self._total < self._offset + _PAGE:
                self._entries.append({"k": step, "old": _node(old), "new": _node(new)})
            self._total += 1


def _node(value: Any) -> Json | None:
    return None if is_missing(value) else Nodes(text=_SHORT, most=20).node(value)


class _Named:
    """The first members of a path, up to an index or star.

    An index ends them, because the item may have had another index before.
    """

    def __init__(self, tokens: list[str]) -> None:
        named: list[str] = []
        for token in tokens:
            if token in ("*", "**", "-") or (named and token.isdecimal()):
                break
            named.append(token)
        paths = [join_pointer(named[:depth]) for depth in range(len(named) + 1)]
        self._path, self._below, self._above = paths[-1], f"{paths[-1]}/", frozenset(paths)
        written = [orjson.dumps(path)[1:-1] for path in paths]
        above = [b'"path":"%b"' % path for path in written[:-1]]
        # a stranger may have written the path with escapes
        self._needles = [*above, b'"path":"%b' % written[-1], b"\\u", b"\\/"] if named else None

    def touches(self, path: str) -> bool:
        """Return whether an operation is at the path, above or below it.

        Lines with only other operations are not parsed.
        """
        return path in self._above or path.startswith(self._below)

    def lines(self, trace: IndexedTrace, start: int, stop: int) -> Iterator[tuple[bytes, int]]:
        """Yield the lines of a range that may have such operations.

        Each line comes with the offset of the byte after it.
        """
        if self._needles is None:
            yield from ((line, at + len(line) + 1) for at, line in trace.file.lines(start, stop))
            return
        for at, block in trace.file.blocks(start, stop):
            for first, last in candidates(block, self._needles):
                yield block[first:last], at + last + 1


def _only(op: dict[str, Any], first: str) -> dict[str, Any]:
    """Return an operation with only one member of the root."""
    if op["path"]:
        return op
    return {**op, "value": _member(op["value"], first)}


def _member(document: Any, name: str) -> dict[str, Any]:
    return {name: document[name]} if isinstance(document, dict) and name in document else {}
