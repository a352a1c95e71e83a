"""A trace that is read: everything else that is known of a run is a projection of it."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, overload

from . import fold
from .blob import Blobs, FolderBlobs, MemoryBlobs
from .check import check_structure
from .errors import TraceError, TraceNotFoundError
from .lines import Lines
from .record import Record
from .store import MemoryStore, trace_name
from .tail import Ending, read_ending

State = TypeVar("State", covariant=True)


class FromDocument(Protocol[State]):
    """A class that can be made from a state's document, as `StateSchema` is."""

    def from_dict(self, doc: dict[str, Any], /) -> State:
        """Make the state of its document."""


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


class Trace:
    """One run's trace, as it stood when it was read.

    `Trace.load(path)` checks framing and tail; `check()` checks all. Reading never changes a file: a torn last line is
    shown in `torn` and otherwise left alone.
    """

    def __init__(
        self,
        source: bytes | Callable[[], bytes],
        *,
        path: Path | None = None,
        blobs: Blobs | None = None,
        memory: MemoryStore | None = None,
        size: int | None = None,
    ) -> None:
        """Make a trace of its bytes, or of what gives them when first needed (then at most `size` of them)."""
        self.path = path
        self._source = source
        self._size = size
        self._memory = memory
        if blobs is None:
            blobs = FolderBlobs(path) if path is not None else MemoryBlobs({})
        self._blobs = blobs

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a trace file.

        Raises `TraceNotFoundError`, or `TraceCorruptError` where a line has not a record's form or the last whole line
        is not what was written. A torn last line is no error.
        """
        path = Path(path)
        try:
            data = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            raise TraceNotFoundError(f"there is no trace at {path}", path) from None
        trace = cls(data, path=path)
        trace._lines.check_tail()
        return trace

    @classmethod
    def from_bytes(cls, data: bytes, *, path: Path | None = None, blobs: dict[str, bytes] | None = None) -> Self:
        """Make a trace of what a file would hold, with its blobs by their hash; checks as `load` does."""
        trace = cls(bytes(data), path=path, blobs=MemoryBlobs(blobs) if blobs is not None else None)
        trace._lines.check_tail()
        return trace

    @cached_property
    def _lines(self) -> Lines:
        if isinstance(self._source, bytes):
            data = self._source
        else:
            try:
                data = self._source()
            except FileNotFoundError:
                raise TraceNotFoundError(f"the trace is gone from {self.path}", self.path) from None
        return Lines(data if self._size is None else data[: self._size], self.path)

    @property
    def data(self) -> bytes:
        """The bytes that were read, torn ones included."""
        return self._lines.data

    @property
    def size(self) -> int:
        """How many bytes the whole records take."""
        return self._lines.end

    @property
    def torn(self) -> bytes:
        """What stands behind the last whole record."""
        return self._lines.torn

    @cached_property
    def records(self) -> Records:
        """All whole records, in the file's order."""
        return Records(self._lines)

    @cached_property
    def header(self) -> Record:
        """The first record; raises `TraceError` where the run ended before it was written."""
        if not self._lines.end:
            raise TraceError(
                f"{self.path or 'the trace'} holds no whole record: the run ended before it began; delete it"
            )
        return self._lines.record_at(0)

    @property
    def run_id(self) -> str:
        """The run's id, as the header says it, else as the file is called."""
        if self._lines.end:
            return str(self.header["run_id"])
        return trace_name(self.path) if self.path is not None else ""

    @cached_property
    def ending(self) -> Ending:
        """How the run stands, with the requests that are open."""
        return read_ending(self._lines.data, self._lines.end) or Ending("interrupted")

    @property
    def status(self) -> str:
        """What the end record says, else `waiting` where a request is open, else `interrupted`."""
        return self.ending.status

    @property
    def stop_reason(self) -> str | None:
        """Why the run ended, where it did."""
        return self.ending.stop_reason

    @property
    def waiting(self) -> tuple[dict[str, Any], ...]:
        """The requests that nobody has answered yet."""
        return self.ending.waiting

    @cached_property
    def step_count(self) -> int:
        """How many steps were committed."""
        return fold.count_commits(self._lines)

    @overload
    def state(self, step: int) -> dict[str, Any]: ...
    @overload
    def state(self, step: int, cls: FromDocument[State]) -> State: ...
    def state(self, step: int, cls: FromDocument[Any] | None = None) -> Any:
        """Give state `step` as a document of its own, or as an instance of `cls`.

        It is the state that step `step` began with; for `step == len(steps)`, or -1, the one after the last commit,
        without what a trailing end record writes (see `final_state`).
        """
        steps = self.step_count
        index = steps + 1 + step if step < 0 else step
        if not 0 <= index <= steps:
            raise IndexError(f"the trace has states 0 to {steps}, not {step}")
        doc = fold.state_at(self._lines, index, steps)
        return doc if cls is None else cls.from_dict(doc)

    @property
    def final_state(self) -> dict[str, Any]:
        """The last document there is: every patch folded, the one of the end record included."""
        doc: dict[str, Any] = fold.fold_to(self._lines, self._lines.end, self.step_count)
        return doc

    def check(self) -> None:
        """Check the whole trace: each hash, the numbering, the structure, each snapshot against the fold.

        Raises `TraceCorruptError` with the first bad line. A torn tail is none.
        """
        self._lines.check_chain()
        check_structure(self._lines)

    def blob(self, reference: dict[str, Any] | str) -> bytes:
        """Give the bytes that a reference `{"$blob": hash, …}`, or a hash, stands for."""
        return self._blobs.get(reference if isinstance(reference, str) else reference["$blob"])

    def memory(self) -> MemoryStore:
        """Give the store that an in-memory trace lives in, for the writer that continues it."""
        if self._memory is None:
            self._memory = MemoryStore(self.data, self._blobs.kept if isinstance(self._blobs, MemoryBlobs) else None)
        return self._memory

    def __repr__(self) -> str:
        return f"<Trace {self.run_id}: {self.step_count} steps, {self.status}>"
