"""A trace's records and steps, as sequences made on first use."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from .errors import TraceCorruptError
from .file.blob import is_blob
from .file.lines import Lines
from .file.record import Record
from .states.history import History
from .step import Step

_KEPT = 64
_BYTES = 2**20
"""How many bytes the lines of the cached steps may have. Once parsed, they take ten to forty times as much."""
_BLOBS = 2**20
"""How many bytes of loaded blobs are kept for later steps; a single step may hold more."""
_WORK = frozenset(("decide", "intent", "outcome", "wait", "input", "branch"))


class Records(Sequence[Record]):
    """The records of a trace, in file order, made on first use."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self._lines.record(i) for i in range(len(self._lines))[index]]
        return self._lines.record(range(len(self._lines))[index])

    def __iter__(self) -> Iterator[Record]:
        return (self._lines.record(i) for i in range(len(self._lines)))

    def of_kind(self, kind: str, seq: int, by: Record) -> Record:
        """Return record `seq`, to which the record `by` refers.

        Raises `TraceCorruptError` if record `seq` is of another kind.
        """
        found = self._lines.record(seq) if seq < by.seq and seq < len(self._lines) else None
        if found is None or found.kind != kind:
            reason = f"the {by.kind} record refers to no earlier {kind}"
            raise TraceCorruptError(reason, by.seq + 1, path=self._lines.path, actual=seq)
        return found


class Loaded:
    """A cache of loaded blobs. Values are shared: do not change them."""

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.size = 0
        self._value = value
        self._known: dict[tuple[str, int], Any] = {}

    def __call__(self, recorded: Any) -> Any:
        """Return a recorded value with its blob loaded, as `Trace.value` does."""
        if not is_blob(recorded):
            return recorded
        name = recorded["$blob"], recorded["bytes"]
        if name not in self._known:
            self._known[name] = self._value(recorded)
            self.size += recorded["bytes"]
        return self._known[name]


class Steps(Sequence[Step]):
    """The committed steps of a trace; the most recently used are cached."""

    def __init__(self, records: Records, history: History, value: Callable[[Any], Any]) -> None:
        self._records = records
        self._history = history
        self._value = value
        self._kept: dict[int, Step] = {}
        self._blobs = Loaded(value)
        self._size = 0

    def __len__(self) -> int:
        return len(self._history.commits)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        if isinstance(index, slice):
            return [self._step(k) for k in range(len(self))[index]]
        return self._step(range(len(self))[index])

    def __iter__(self) -> Iterator[Step]:
        return (self._step(k) for k in range(len(self)))

    def unfinished(self) -> Step | None:
        """Return the step under way when the trace ended, or None."""
        records = [record for record in self._records[self._start(len(self)) :] if record.step == len(self)]
        if not any(record.kind in _WORK for record in records):
            return None
        return Step(len(self), records, None, self._history, self._records.of_kind, self._value)

    def _start(self, k: int) -> int:
        """Return the index of the record after the previous commit or header."""
        return self._history.commits[k - 1] + 1 if k else 1

    def _step(self, k: int) -> Step:
        if k not in self._kept:
            last = self._history.commits[k]
            records = [*self._records[self._start(k) : last], self._history.record(last)]
            if self._blobs.size > _BLOBS:  # the cached steps hold the blobs they have loaded
                self._kept.clear()
                self._size = 0
                self._blobs = Loaded(self._value)
            size = sum(len(record.raw) for record in records)
            while self._kept and (len(self._kept) >= _KEPT or self._size + size > _BYTES):
                first = next(iter(self._kept))
                self._size -= sum(len(record.raw) for record in self._kept.pop(first).records)
            self._size += size
            self._kept[k] = Step(k, records, records[-1], self._history, self._records.of_kind, self._blobs)
        return self._kept[k]
