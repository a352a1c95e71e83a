"""States of a trace with their writers, folded from a snapshot."""

from collections.abc import Callable
from typing import Any

from ..errors import PatchError, TraceCorruptError, TraceError
from ..file.record import Record
from ..json_patch.apply import copy_json
from .positions import Positions, SnapshotAt, StaleIndexError
from .trace_file import TraceFile
from .value_writers import INITIAL, Writers, apply_written

_PATCHING = (b'{"kind":"commit",', b'{"kind":"resume",', b'{"kind":"end",')


class Fold:
    """The states of one trace.

    Args:
        file: the trace.
        positions: where its snapshots are.
        record: parses a line, with all checks of a record.
        base: returns the state of another run, for a run that starts there.
    """

    def __init__(
        self, file: TraceFile, positions: Positions, record: Callable[[bytes], Record], base: Callable[[], Any]
    ) -> None:
        self._file, self._positions, self._record, self._base = file, positions, record, base
        self._cursor: tuple[int, int, Any, Writers] | None = None  # byte, commits, document, writers

    def reset(self) -> None:
        """Drop the cached state."""
        self._cursor = None

    def at(self, stop: int, k: int, expected: bool) -> tuple[Any, Writers]:
        """Return document and writers at byte `stop`, after k commits.

        Both are shared with later calls. With `expected`, there must be a snapshot.
        """
        near = self._positions.snapshot_before(stop)
        cursor = self._cursor
        if cursor is not None and near is not None and near.offset <= cursor[0] <= stop:
            at, commits, document, writers = cursor
        elif near is None:
            if expected:
                raise StaleIndexError(f"the index of {self._file.path} has lost its snapshots")
            raise TraceError("the trace has no state: the run ended before init_state returned one")
        else:
            document, writers = self._opened(near)
            at, commits = near.stop, near.k
        self._cursor = None  # a patch that does not fit leaves the document half changed
        document, writers = self._forward(document, writers, at, stop, commits)
        self._cursor = (stop, k, document, writers)
        return document, writers

    def alone(self, stop: int) -> tuple[Any, Writers]:
        """Return unshared document and writers at byte `stop`, if any."""
        near = self._positions.snapshot_before(stop)
        if near is None:
            return None, INITIAL
        document, writers = self._opened(near)
        return self._forward(document, writers, near.stop, stop, near.k)

    def _opened(self, near: SnapshotAt) -> tuple[Any, Writers]:
        line = self._file.read(near.offset, near.stop)
        record = self._record(line.removesuffix(b"\n"))
        if record.kind != "snapshot" or record.step != near.k:
            raise StaleIndexError(f"the index of {self._file.path} does not fit the snapshot at byte {near.offset}")
        document = record["state"] if "state" in record else copy_json(self._base())
        try:
            return document, near.writers()
        except ValueError as error:
            raise StaleIndexError(f"the index of {self._file.path} is corrupt: {error}") from None

    def _forward(self, document: Any, writers: Writers, start: int, stop: int, commits: int) -> tuple[Any, Writers]:
        for _, line in self._file.lines(start, stop):
            if line.startswith(_PATCHING):
                record = self._record(line)
                patch = record.get("patch")
                if patch:
                    try:
                        document, writers = apply_written(document, writers, patch, commits)
                    except PatchError as error:
                        reason = f"the patch does not fit the state: {error}"
                        raise TraceCorruptError(reason, record.seq + 1, path=self._file.path) from None
                commits += record.kind == "commit"
        return document, writers
