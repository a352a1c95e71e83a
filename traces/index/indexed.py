"""A trace read through its index.

Any step, and any state with its writers, costs a few kilobytes. The index names the bytes of a step. These bytes are
then read as records, with all checks of a record. An index that led to the wrong place is dropped and made anew.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..analysis.locate import find_relative
from ..analysis.step_facts import StepFacts
from ..errors import RecordError, TraceCorruptError, TraceError
from ..file.append_only import trace_name
from ..file.blob import FolderBlobs
from ..file.lines import Lines
from ..file.record import BEAT, Record
from ..file.safe_open import read_file
from ..file.tail import Ending, find_end, read_ending
from ..json_patch.fold import Writers
from ..states.places import SnapshotAt, StaleIndexError, StepPlace
from ..states.states import States
from ..step import Step
from ..trace import Trace
from .blobs import Blobs
from .database import Database
from .positions import Positions
from .reach import Reach
from .trace_file import CHUNK, TraceFile
from .walk import Tally, Walk


class IndexedTrace:
    """One trace of a folder, with its positions.

    Methods may be called from any thread; each uses the index as of the last `refresh`.

    Args:
        path: the trace.
        database: the index; `name` is the trace's name in it.
        links: whether the path may be a link.
    """

    def __init__(self, path: Path, database: Database, name: str, *, links: bool = False) -> None:
        self.file = TraceFile(path, links=links)
        self.path = path
        self.positions = Positions(database, name)
        self._places = _IndexPlaces(self)
        self._states = States(self.file, self.file.size, self._places, self.base_document)
        self.lock = self._states.lock
        self._base: tuple[Any] | None = None
        self._blob_files = FolderBlobs(path)
        self._shared_blobs: Blobs | None = None
        self.header = self.file.header()
        _ = self.header.data  # raises here if the header's members do not fit
        self._reach = Reach(self.file, self.header.hash, self.positions, self._states, self.base_document, self.lock)

    @property
    def run_id(self) -> str:
        """The run's id, from the header, otherwise from the file's name."""
        return self.header.get("run_id") or trace_name(self.path)

    @property
    def end(self) -> dict[str, Any]:
        """The end record's members, or the status alone if there is none."""
        ending = self.ending()
        return ending.record or {"status": ending.status}

    # the index's end

    @property
    def walk(self) -> Walk:
        """The walk, at the end of the indexed part."""
        return self._reach.walk

    @property
    def problem(self) -> TraceCorruptError | None:
        """The first unreadable line, or None; earlier steps are available."""
        return self._reach.problem

    @property
    def is_complete(self) -> bool:
        """True if the last extension reached the end of the file."""
        return self._reach.is_complete

    @property
    def count(self) -> int:
        """The number of committed steps that are indexed."""
        return self.walk.k

    @property
    def tally(self) -> Tally:
        """The counts over the indexed part."""
        return self.walk.tally

    @property
    def version(self) -> str:
        """A text that changes whenever the indexed part grows."""
        return f"{self.walk.offset:x}"

    @property
    def share(self) -> float:
        """The share of the file that is indexed, from 0 to 1."""
        return self._reach.share

    def fits(self) -> bool:
        """Return whether the file is the indexed one, perhaps longer."""
        return self._reach.fits()

    def refresh(self, seconds: float = float("inf")) -> bool:
        """Index new lines for `seconds`; return whether the index is complete."""
        return self._reach.refresh(seconds)

    def forget(self) -> None:
        """Drop the index of this trace."""
        self._reach.forget()

    # steps

    def open_facts(self) -> StepFacts | None:
        """Return the figures of the current step, or None."""
        walk = self.walk
        return walk.open.close(walk.k, None, walk.offset, walk.offset) if walk.open.is_begun else None

    def facts(self, first: int, stop: int) -> list[StepFacts]:
        """Return the figures of the steps `first` to `stop - 1`.

        The open step, if it is among them, comes last.
        """
        with self.lock:
            count = self.count
            found = self.positions.steps(first, min(stop, count))
            if first <= count < stop and (last := self.open_facts()) is not None:
                found.append(last)
            return found

    def query(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return a query's rows for this trace.

        The query refers to this trace as `:trace`, and to each of `values` by its name.
        """
        with self.lock:
            _ = self.walk
            return self.positions.query(sql, **values)

    def one(self, k: int) -> StepFacts:
        """Return the figures of one step.

        Raises `IndexError` if there is none, `StaleIndexError` if the index has lost it.
        """
        with self.lock:
            count = self.count
            if not 0 <= k <= count:
                raise IndexError(f"the run has steps 0 to {count - 1}, not {k}")
            found = self.positions.step(k) if k < count else self.open_facts()
            if found is None and k < count:
                raise StaleIndexError(f"the index of {self.path} has no step {k}")
            if found is None:
                raise IndexError(f"the run has steps 0 to {count - 1}, not {k}")
            return found

    def records(self, k: int) -> list[Record]:
        """Return the records of a step, its commit last."""
        with self.lock:
            facts, committed = self.one(k), k < self.count
            start = self.one(k - 1).stop if k else 0
            stop = facts.stop if committed else self.walk.offset
        if facts.start != start or (start and self.file.read(start - 1, start) != b"\n"):
            raise StaleIndexError(f"the index of {self.path} does not fit step {k}")
        found = [self.record(line) for _, line in self.file.lines(start, stop)]
        if committed and not (found and found[-1].kind == "commit" and found[-1].step == k):
            raise StaleIndexError(f"the index of {self.path} does not fit step {k}")
        return [each for each in found if not (each.kind == "event" and each.get("name") == BEAT)]

    def record(self, line: bytes) -> Record:
        """Return a line as a record, or raise `TraceCorruptError`."""
        try:
            return Record.parse(line, self.path)
        except RecordError as error:
            raise TraceCorruptError(str(error), 0, path=self.path) from None

    def step(self, k: int) -> Step:
        """Return one step; its documents are read on first use."""
        records = self.records(k)
        by_seq = {record.seq: record for record in records}

        def lookup(kind: str, seq: int, by: Record) -> Record:
            found = by_seq.get(seq)
            if found is None or found.kind != kind or seq >= by.seq:
                reason = f"the {by.kind} record refers to no earlier {kind} of its step"
                raise TraceCorruptError(reason, by.seq + 1, path=self.path, actual=seq)
            return found

        commit = records[-1] if k < self.count else None
        return Step(k, records, commit, self._states, lookup, self.blobs())

    def patch(self, k: int) -> list[dict[str, Any]]:
        """Return the patch of a step's commit."""
        facts = self.one(k)
        if k >= self.count:
            return []
        line = self.file.read(facts.commit, facts.stop).removesuffix(b"\n")
        record = self.record(line)
        if record.kind != "commit" or record.step != k:
            raise StaleIndexError(f"the index of {self.path} does not fit step {k}")
        found: list[dict[str, Any]] = record.get("patch") or []
        return found

    def document(self, k: int, end: bool = False) -> tuple[Any, Writers]:
        """Return state k and its writers.

        State k is the state before step k, or after the last step. With `end`, it includes the changes of all records,
        a trailing `end` included. Both results are shared with later calls: read them under `lock`, and do not change
        them. Raises `IndexError`, and `TraceError` if the trace has no state.
        """
        with self.lock:
            count = self.count
            if not 0 <= k <= count:
                raise IndexError(f"the run has states 0 to {count}, not {k}")
            stop = self.walk.offset if end else self._places.state_end(k)
            fold = self._states.next_written(stop, k)
            return fold.document, fold.writers

    def before_end(self) -> int:
        """Return the byte before a trailing `end`, otherwise the indexed end."""
        stop = self.walk.offset
        start = self.walk.open.start
        data = self.file.read(max(start, stop - CHUNK), stop)
        first = 0 if stop - len(data) == start else data.find(b"\n") + 1
        at = find_end(data[first:], len(data) - first)
        return stop if at is None else stop - len(data) + first + at

    def first_state(self) -> Any:
        """Return state 0, unshared, or None if none is indexed."""
        found = self.query("SELECT stop FROM snapshots WHERE trace = :trace ORDER BY offset LIMIT 1")
        return self._states.own(found[0][0], 0) if found else None

    def base_document(self) -> Any:
        """Return the state of another run from which this run starts.

        The state is shared: do not change it. Raises `TraceNotFoundError` if the other trace is missing.
        """
        if self._base is None:
            link = self.header.get("parent") or {}
            if "run" not in link:
                raise TraceCorruptError("the trace starts at another run's state, but names no run", 2, path=self.path)
            if link["run"] == self.run_id:
                raise TraceError(f"run {link['run']} starts with a state of its own")
            place = find_relative(self.path, link["run"])
            trace = Trace.from_bytes(read_file(place), path=place)  # no links: a stranger's link could lead to any file
            if link.get("hash"):
                trace = trace.until(link["hash"])
            self._base = (trace.state(link["step"]),)
        return self._base[0]

    # facts of the run

    def ending(self) -> Ending:
        """Return how the run ended, from its last records."""
        stop = self.walk.offset if self.is_complete else self.file.size
        length = CHUNK // 16
        while True:
            start = max(0, stop - length)
            data = self.file.read(start, stop)
            first = data.find(b"\n") + 1 if start else 0
            found = read_ending(Lines(data[first:], self.path))
            if found is not None or not start:
                return found or Ending("interrupted")
            length *= 8

    def budget(self) -> dict[str, Any]:
        """Return the budget in force: the last resume's, otherwise the header's."""
        attempts = self.tally.attempts
        found: dict[str, Any] = self.header.get("budget") or {}
        if attempts:
            stop = self.walk.offset
            while stop > 0:
                start = max(0, stop - CHUNK)
                data = self.file.read(start, min(self.walk.offset, stop + 64))
                at = data.rfind(b'\n{"kind":"resume",')
                if at >= 0:
                    line = next(iter(self.file.lines(start + at + 1)))[1]
                    return self.record(line).get("budget") or found
                stop = start
        return found

    def blobs(self) -> Blobs:
        """Return a reader for the blobs of one answer.

        After `share_blobs`, all answers have the same reader.
        """
        return self._shared_blobs or Blobs(self._blob_files)

    def share_blobs(self, room: int) -> Blobs:
        """Read each blob once, and at most `room` bytes of blobs.

        This is for an export, which needs the whole run.
        """
        self._shared_blobs = Blobs(self._blob_files, room)
        return self._shared_blobs

    def lines(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of an indexed range, with their offsets."""
        return self.file.lines(start, min(stop, self.walk.offset))

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class _IndexPlaces:
    """The places of an indexed trace, as far as it is indexed."""

    def __init__(self, trace: IndexedTrace) -> None:
        self._trace = trace

    @property
    def count(self) -> int:
        """The number of committed steps."""
        return self._trace.count

    def step(self, k: int) -> StepPlace:
        """Return the place of a committed step."""
        facts = self._trace.one(k)
        return StepPlace(facts.start, facts.commit, facts.stop)

    def snapshot_before(self, stop: int, after: int = 0) -> SnapshotAt | None:
        """Return the last snapshot between two bytes."""
        near = self._trace.positions.snapshot_before(stop, after)
        if near is None and not after and self._trace.walk.fold is not None:
            raise StaleIndexError(f"the index of {self._trace.path} has lost its snapshots")
        return near

    def state_end(self, k: int) -> int:
        """Return the byte up to which state `k` is read."""
        return self.step(k).commit if k < self.count else self._trace.before_end()
