"""A trace read through its index: any step, and any state with its writers, at the cost of a few kilobytes.

The index says where the bytes of a step are. The bytes are then read as records, with all checks of a record; an index
that led to the wrong place is dropped, and made anew.
"""

import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from ...errors import PatchError, RecordError, TraceCorruptError, TraceError
from ..analysis.locate import find_relative
from ..file.blob import FolderBlobs, is_blob
from ..file.lines import Lines
from ..file.opening import read_file
from ..file.record import BEAT, Record
from ..file.schema import DEPTH, is_shallow
from ..file.store import trace_name
from ..file.tail import Ending, find_end, read_ending
from ..json_patch.apply import copy_json
from ..json_patch.share import patched
from ..step import Step
from ..trace import Trace
from .database import Database
from .step_facts import StepFacts, Used
from .trace_file import CHUNK, TraceFile
from .walk import Snapshot, Tally, Walk, patching_step
from .writers import INITIAL, Writers, apply_written

_BATCH = 2_000
"""How many steps are written to the index at a time."""
_COLUMNS = (
    "k, start, commit_at, stop, mode, kind, label, errors, seconds, tokens_in, tokens_out, cost, actions, changes, at, "
    "sum_seconds, sum_tokens_in, sum_tokens_out, sum_cost, sum_unpriced"
)
_STEP = f"INSERT OR REPLACE INTO steps (trace, {_COLUMNS}) VALUES ({', '.join('?' * 21)})"
_SNAPSHOT = "INSERT OR REPLACE INTO snapshots (trace, offset, stop, k, writers) VALUES (?, ?, ?, ?, ?)"
_STATE = "INSERT INTO traces (file, state) VALUES (?, ?) ON CONFLICT (file) DO UPDATE SET state = excluded.state"
_LARGEST_BLOB = 1 << 24
"""The largest blob that is parsed for a page; larger ones are shown by their size."""


class StaleIndexError(TraceError):
    """The index of a trace led to a place that does not hold what it said."""


class IndexedTrace:
    """One trace of a folder, with its positions.

    Methods may be called from any thread; each takes what the file holds now, once `refresh` has looked.

    Args:
        path: the trace.
        database: the index; `name` is the trace's name in it.
        base: returns the state of another run, by (run, step, hash), for a run that starts there.
    """

    def __init__(self, path: Path, database: Database, name: str, *, links: bool = False) -> None:
        self.file = TraceFile(path, links=links)
        self.path = path
        self.lock = threading.RLock()
        self.problem: TraceCorruptError | None = None
        """The first line that cannot be read, if one was found: the steps before it are there."""
        self._database = database
        self._name = name
        self._walk: Walk | None = None
        self._trace = 0
        self._cursor: tuple[int, int, Any, Writers] | None = None  # byte, commits, document, writers
        self._base: tuple[Any] | None = None
        self._blobs = FolderBlobs(path)
        self.header = self.file.header()
        _ = self.header.data  # raises here if the header's members do not fit

    @property
    def run_id(self) -> str:
        """The run's id, from the header, otherwise from the file's name."""
        return self.header.get("run_id") or trace_name(self.path)

    @property
    def end(self) -> dict[str, Any]:
        """The members of the end record in force; without one, only the status."""
        ending = self.ending()
        return ending.record or {"status": ending.status}

    # how far the index goes

    @property
    def walk(self) -> Walk:
        """The walk, at the end of what was indexed."""
        if self._walk is None:
            self.refresh()
        assert self._walk is not None
        return self._walk

    @property
    def count(self) -> int:
        """The number of committed steps that are indexed."""
        return self.walk.k

    @property
    def tally(self) -> Tally:
        """The counts over what is indexed."""
        return self.walk.tally

    @property
    def version(self) -> str:
        """A text that changes whenever the indexed part has grown."""
        return f"{self.walk.offset:x}"

    def refresh(self) -> int:
        """Index what the file has gained; return the first step that is new or changed."""
        with self.lock:
            if self._walk is None:
                self._walk = self._restored()
            before, walk = self._walk.k, self._walk
            if self.file.size > walk.offset and self.problem is None:
                self._extend(walk)
            return before

    def _extend(self, walk: Walk) -> None:
        steps: list[StepFacts] = []
        snapshots: list[Snapshot] = []
        committed = walk.offset
        try:
            for found in walk.feed(self.file.lines(walk.offset), self.base_document, self.path):
                if isinstance(found, Snapshot):
                    packed = zlib.compress(orjson.dumps(found.writers), 1)
                    snapshots.append(found._replace(writers=packed))
                else:
                    steps.append(found)
                    committed = found.stop
                if len(steps) >= _BATCH:
                    self._save(walk, steps, snapshots, committed)
                    steps, snapshots = [], []
        except RecordError as error:
            self.problem = TraceCorruptError(str(error), walk.tally.records + 1, path=self.path)
        except TraceCorruptError as error:
            self.problem = error
        self._save(walk, steps, snapshots, committed)

    def _save(self, walk: Walk, steps: list[StepFacts], snapshots: list[Snapshot], committed: int) -> None:
        if not steps and not snapshots:
            return
        state: dict[str, Any] = {"offset": committed, "k": walk.k, "header": self.header.hash}
        if steps:
            tally, counted = walk.tally, walk.counted
            state |= {
                "hash": self.file.hash_before(committed),
                "tally": counted[:-1],
                "attempts": tally.attempts[: counted[-1]],
                "patterns": dict(tally.patterns - walk.uncounted),
            }
        with self._database.together():
            if steps:
                self._database.write([(_STATE, [(self._name, orjson.dumps(state))])])
            elif not self._known():
                self._database.write([(_STATE, [(self._name, b"{}")])])
            if not self._trace:
                self._known()
            self._database.write(
                [
                    (_STEP, [(self._trace, *each) for each in steps]),
                    (_SNAPSHOT, [(self._trace, *each) for each in snapshots]),
                ]
            )

    def _known(self) -> dict[str, Any] | None:
        """Return what the index says of this trace, and note the trace's number in it."""
        found = self._database.rows("SELECT id, state FROM traces WHERE file = ?", (self._name,))
        if not found:
            return None
        self._trace = found[0][0]
        try:
            state = orjson.loads(found[0][1])
        except orjson.JSONDecodeError:
            return {}
        return state if isinstance(state, dict) else {}

    def _restored(self) -> Walk:
        """Return a walk that goes on where the index ends; from the beginning if the index does not fit the file."""
        try:
            state = self._known()
            if state and state.get("header") == self.header.hash:
                offset, k = int(state["offset"]), int(state["k"])
                digest = self.file.hash_before(offset)
                last = self._facts(k - 1) if k else None
                steps = self._database.rows("SELECT count(*) FROM steps WHERE trace = ?", (self._trace,))[0][0]
                fits = digest is not None and digest == state["hash"] and steps == k
                if fits and last is not None and last.stop == offset:
                    used = Used(
                        last.sum_seconds, last.sum_tokens_in, last.sum_tokens_out, last.sum_cost, last.sum_unpriced
                    )
                    tally = Tally.restored(state["tally"])
                    tally.attempts = [(int(a), float(at), int(step)) for a, at, step in state["attempts"]]
                    tally.patterns.update({str(path): int(n) for path, n in state["patterns"].items()})
                    document, writers = self.folded(offset, k)
                    if document is not None:
                        return Walk(offset, k, used, document, writers, tally)
        except (KeyError, TypeError, ValueError, TraceError):
            pass  # an index that does not fit, whatever is wrong with it, is made anew
        self.forget()
        return Walk()

    def forget(self) -> None:
        """Drop what the index says of this trace."""
        with self.lock:
            if self._known() is not None:
                self._database.write(
                    [
                        ("DELETE FROM steps WHERE trace = ?", [(self._trace,)]),
                        ("DELETE FROM snapshots WHERE trace = ?", [(self._trace,)]),
                        ("DELETE FROM traces WHERE id = ?", [(self._trace,)]),
                    ]
                )
            self._trace, self._walk, self._cursor, self.problem = 0, None, None, None

    # steps

    def _facts(self, k: int) -> StepFacts | None:
        found = self._database.rows(f"SELECT {_COLUMNS} FROM steps WHERE trace = ? AND k = ?", (self._trace, k))
        return StepFacts(*found[0]) if found else None

    def open_facts(self) -> StepFacts | None:
        """Return the figures of the step under way; None if there is none."""
        walk = self.walk
        return walk.open.close(walk.k, None, walk.offset, walk.offset) if walk.open.is_begun else None

    def facts(self, first: int, stop: int) -> list[StepFacts]:
        """Return the figures of the steps from `first` up to, and without, `stop`; the one under way is the last."""
        with self.lock:
            count = self.count
            rows = self._database.rows(
                f"SELECT {_COLUMNS} FROM steps WHERE trace = ? AND k >= ? AND k < ? ORDER BY k",
                (self._trace, first, min(stop, count)),
            )
            found = [StepFacts(*row) for row in rows]
            if first <= count < stop and (last := self.open_facts()) is not None:
                found.append(last)
            return found

    def query(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose first value is this trace's number in the index."""
        with self.lock:
            _ = self.walk
            return self._database.rows(sql, (self._trace, *values))

    def one(self, k: int) -> StepFacts:
        """Return the figures of one step.

        Raises `IndexError` if there is none, `StaleIndexError` if the index has lost it.
        """
        with self.lock:
            count = self.count
            if not 0 <= k <= count:
                raise IndexError(f"the run has steps 0 to {count - 1}, not {k}")
            found = self._facts(k) if k < count else self.open_facts()
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
        """Return a line as a record; raises `TraceCorruptError` if it has not the form of one."""
        try:
            return Record.parse(line, self.path)
        except RecordError as error:
            raise TraceCorruptError(str(error), 0, path=self.path) from None

    def step(self, k: int) -> Step:
        """Return one step; its documents are read when they are asked for."""
        records = self.records(k)
        by_seq = {record.seq: record for record in records}

        def lookup(kind: str, seq: int, by: Record) -> Record:
            found = by_seq.get(seq)
            if found is None or found.kind != kind or seq >= by.seq:
                reason = f"the {by.kind} record refers to no earlier {kind} of its step"
                raise TraceCorruptError(reason, by.seq + 1, path=self.path, actual=seq)
            return found

        commit = records[-1] if k < self.count else None
        return Step(k, records, commit, _Documents(self, k), lookup, self.value)

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

    # states

    def document(self, k: int, end: bool = False) -> tuple[Any, Writers]:
        """Return state k and its writers: the state before step k, or after the last step.

        With `end`, the changes of all records are in it, a trailing `end` included. The two are shared with later
        calls: read them under `lock`, and do not change them. Raises `IndexError`, and `TraceError` if the trace has no
        state.
        """
        with self.lock:
            count = self.count
            if not 0 <= k <= count:
                raise IndexError(f"the run has states 0 to {count}, not {k}")
            if end:
                stop = self.walk.offset
            elif k < count:
                stop = self.one(k).commit
            else:
                stop = self._before_the_end()
            return self._at(stop, k)

    def _before_the_end(self) -> int:
        """Return the byte where a trailing `end` begins, otherwise the end of what is indexed."""
        stop = self.walk.offset
        start = self.walk.open.start
        data = self.file.read(max(start, stop - CHUNK), stop)
        first = 0 if stop - len(data) == start else data.find(b"\n") + 1
        at = find_end(data[first:], len(data) - first)
        return stop if at is None else stop - len(data) + first + at

    def _at(self, stop: int, k: int) -> tuple[Any, Writers]:
        """Return the document and the writers at byte `stop`, with k commits before it."""
        cursor = self._cursor
        near = self._snapshot_before(stop)
        if cursor is not None and near is not None and near[0] <= cursor[0] <= stop:
            at, commits, document, writers = cursor
        elif near is None:
            if self.walk.document is not None:
                raise StaleIndexError(f"the index of {self.path} has lost its snapshots")
            raise TraceError("the trace has no state: the run ended before init_state gave one")
        else:
            document, writers = self._opened(near)
            at, commits = near[1], near[2]
        self._cursor = None  # a patch that does not fit leaves the document half changed
        document, writers = self._forward(document, writers, at, stop, commits)
        self._cursor = (stop, k, document, writers)
        return document, writers

    def folded(self, stop: int, k: int) -> tuple[Any, Writers]:
        """Return a document and writers at byte `stop` that nobody else holds."""
        near = self._snapshot_before(stop)
        if near is None:
            return None, INITIAL
        document, writers = self._opened(near)
        return self._forward(document, writers, near[1], stop, near[2])

    def _snapshot_before(self, stop: int) -> tuple[int, int, int, bytes] | None:
        found = self._database.rows(
            "SELECT offset, stop, k, writers FROM snapshots WHERE trace = ? AND stop <= ? ORDER BY offset DESC LIMIT 1",
            (self._trace, stop),
        )
        return found[0] if found else None

    def _opened(self, near: tuple[int, int, int, bytes]) -> tuple[Any, Writers]:
        line = self.file.read(near[0], near[1])
        record = self.record(line.removesuffix(b"\n"))
        if record.kind != "snapshot" or record.step != near[2]:
            raise StaleIndexError(f"the index of {self.path} does not fit the snapshot at byte {near[0]}")
        document = record["state"] if "state" in record else copy_json(self.base_document())
        try:
            return document, orjson.loads(zlib.decompress(near[3]))
        except (zlib.error, orjson.JSONDecodeError) as error:
            raise StaleIndexError(f"the index of {self.path} is damaged: {error}") from None

    def _forward(self, document: Any, writers: Writers, start: int, stop: int, commits: int) -> tuple[Any, Writers]:
        for _, line in self.file.lines(start, stop):
            if line.startswith((b'{"kind":"commit",', b'{"kind":"resume",', b'{"kind":"end",')):
                record = self.record(line)
                patch = record.get("patch")
                if patch:
                    try:
                        step = patching_step(record, commits)
                        document, writers = apply_written(document, writers, patch, step)
                    except PatchError as error:
                        reason = f"the patch does not fit the state: {error}"
                        raise TraceCorruptError(reason, record.seq + 1, path=self.path) from None
                commits += record.kind == "commit"
        return document, writers

    def base_document(self) -> Any:
        """Return the state of another run at which this run starts; it is shared: do not change it.

        Raises `TraceNotFoundError` if the other trace is missing.
        """
        if self._base is None:
            link = self.header.get("parent") or {}
            if "run" not in link:
                raise TraceCorruptError("the trace starts at another run's state, and names none", 2, path=self.path)
            if link["run"] == self.run_id:
                raise TraceError(f"run {link['run']} begins with a state of its own")
            place = find_relative(self.path, link["run"])
            trace = Trace.from_bytes(read_file(place), path=place)  # no links: a stranger's could lead to any file
            if link.get("hash"):
                trace = trace.until(link["hash"])
            self._base = (trace.state(link["step"]),)
        return self._base[0]

    # what the run says of itself

    def ending(self) -> Ending:
        """Return how the run stands, from its last records."""
        stop = self.walk.offset
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

    def value(self, recorded: Any) -> Any:
        """Return the value that a recorded value stands for: a blob's, or the value itself.

        A blob that is too large for a page, or missing, or damaged, stays the reference that it is.
        """
        if not is_blob(recorded) or recorded["bytes"] > _LARGEST_BLOB:
            return recorded
        try:
            data = self._blobs.get(recorded["$blob"], recorded["bytes"])
            value = orjson.loads(data)
        except (TraceError, OSError, orjson.JSONDecodeError):
            return recorded
        return value if is_shallow(value, DEPTH) else recorded

    def lines(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of a range of the indexed part, with their offsets."""
        return self.file.lines(start, min(stop, self.walk.offset))

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class _Documents:
    """The documents round one step, for `Step`."""

    def __init__(self, trace: IndexedTrace, k: int) -> None:
        self._trace = trace
        self._k = k
        self._before: tuple[Any] | None = None

    def before(self, step: int) -> Any:
        """Return the document before the step."""
        if self._before is None:
            with self._trace.lock:
                self._before = (copy_json(self._trace.document(step)[0]),)
        return self._before[0]

    def after(self, step: int) -> Any:
        """Return the document after the step."""
        return patched(self.before(step), self._trace.patch(step))

    def latest(self) -> Any:
        """Return the document after all records."""
        with self._trace.lock:
            return copy_json(self._trace.document(self._k, end=True)[0])
