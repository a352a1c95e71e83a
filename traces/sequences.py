"""Records and steps as sequences whose items are made when they are looked at."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from .errors import TraceCorruptError
from .history import History
from .lines import Lines
from .record import Record
from .step import Step

_KEPT = 64
_WORK = frozenset(("decide", "intent", "outcome", "wait", "input", "branch"))


class Records(Sequence[Record]):
    """The records of a trace in the file's order, each made when it is looked at."""

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
        """Give the earlier record that another refers to; raises `TraceCorruptError` where it is none of that kind."""
        found = self._lines.record(seq) if seq < by.seq and seq < len(self._lines) else None
        if found is None or found.kind != kind:
            reason = f"the {by.kind} record refers to no earlier {kind}"
            raise TraceCorruptError(reason, by.seq + 1, path=self._lines.path, actual=seq)
        return found


class Steps(Sequence[Step]):
    """The committed steps of a trace; the last few that were looked at are kept."""

    def __init__(self, records: Records, history: History, value: Callable[[Any], Any]) -> None:
        self._records = records
        self._history = history
        self._value = value
        self._kept: dict[int, Step] = {}

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
        """Give the step that was under way when the trace ended, if one was."""
        records = [record for record in self._records[self._start(len(self)) :] if record.step == len(self)]
        if not any(record.kind in _WORK for record in records):
            return None
        return Step(len(self), records, None, self._history, self._records.of_kind, self._value)

    def _start(self, k: int) -> int:
        """The index of a step's first record: the one behind the commit before, or the header."""
        return self._history.commits[k - 1] + 1 if k else 1

    def _step(self, k: int) -> Step:
        if k not in self._kept:
            records = self._records[self._start(k) : self._history.commits[k] + 1]
            if len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[k] = Step(k, records, records[-1], self._history, self._records.of_kind, self._value)
        return self._kept[k]
