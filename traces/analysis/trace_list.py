"""The traces of a folder, listed from both ends of each file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import NotATraceError, TraceCorruptError, TraceError
from ..file.append_only import SUFFIX, trace_name
from ..file.file_bytes import FileBytes
from ..file.lines import Lines, begins_a_trace
from ..file.lock import lock_holder
from ..file.safe_open import open_file, written_size
from ..file.tail import read_ending
from ..states.fold import count_commits

_HEAD = _TAIL = 64 * 1024


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One trace of a folder.

    `status` is "corrupt" if the trace cannot be read, and `error` says why. `started_at` is in seconds since the epoch,
    and `size` in bytes. `pid` is the process that is writing the trace; it is None if no process does, or the system
    does not say.
    """

    path: Path
    run_id: str
    status: str
    stop_reason: str | None
    steps: int
    objective: str | None
    started_at: float | None
    size: int
    pid: int | None = None
    error: str | None = None


def list_traces(folder: Path | str) -> list[TraceSummary]:
    """Return summaries of the traces in a folder, oldest first.

    Subfolders are left out; bad files have the status "corrupt".
    """
    found = [summarize(path) for path in Path(folder).glob("*" + SUFFIX)]
    return sorted(found, key=lambda summary: (summary.started_at or 0.0, summary.run_id))


def summarize(path: Path) -> TraceSummary:
    """Return the summary of one trace; "corrupt" after an error."""
    size = 0
    try:
        with open(open_file(path), "rb") as file:
            size = written_size(file.fileno(), path)
            file.seek(0)
            return _read(path, file, size)
    except (TraceError, OSError) as error:
        reason = error.reason if isinstance(error, TraceCorruptError) else one_line(error)
        return TraceSummary(path, trace_name(path), "corrupt", None, 0, None, None, size, None, reason)


def one_line(error: TraceError | OSError) -> str:
    """Return an error's message without the path: "cannot be read: Permission denied"."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    cause = error.__cause__
    return f"cannot be read: {cause.strerror}" if isinstance(cause, OSError) else str(error)


def _read(path: Path, file: BinaryIO, size: int) -> TraceSummary:
    first = file.readline(size)
    if not begins_a_trace(first):
        raise NotATraceError(path)
    if not first.endswith(b"\n"):
        return TraceSummary(
            path, trace_name(path), "interrupted", None, 0, None, None, size, lock_holder(path), "no complete record"
        )
    header = Lines(first, path).record(0)
    if header.kind != "header":
        raise TraceCorruptError("the header is the first record", 1, path=path, actual=header.kind)
    start = max(0, size - _TAIL)
    file.seek(start)
    lines = Lines(file.read(size - start), path)
    steps, ending = count_commits(lines), read_ending(lines)
    if start and not (steps and ending):  # the last step is longer
        lines = Lines(FileBytes(os.dup(file.fileno()), path, size), path)
        steps, ending = count_commits(lines), read_ending(lines)
    if ending is None:
        raise TraceCorruptError("the trace has no records", 1, path=path)
    if not lines.last_fits():
        raise TraceCorruptError("the last line does not fit its hash", 0, path=path)
    return TraceSummary(
        path=path,
        run_id=header.get("run_id") or trace_name(path),
        status=ending.status,
        stop_reason=ending.stop_reason,
        steps=steps,
        objective=(header.get("task") or {}).get("objective"),
        started_at=header.at,
        size=size,
        pid=lock_holder(path),
    )
