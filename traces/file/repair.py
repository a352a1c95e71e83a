"""Cutting off what can't be read, with a word on what was cut."""

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import TraceCorruptError, TraceError
from ..trace import Trace
from .lines import Lines
from .store import FileStore


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done to the trace at `path`: `kept` whole records stand, `cut` bytes are gone (0: nothing was wrong).

    `backup` is a copy of the file as it was, made where more than a torn tail was cut; `error` is what was found then.
    """

    path: Path
    kept: int
    cut: int
    backup: Path | None = None
    error: TraceCorruptError | None = None


def repair(path: Path | str, *, truncate_at_corruption: bool = False) -> Repair:
    """Cut a torn tail off a trace file, under its lock.

    A trace with a bad line in the middle is left alone and `TraceCorruptError` is raised, unless
    `truncate_at_corruption`: then the file is first copied to `<name>.bak` beside it and everything from that line on
    is cut off. A file that is no trace, or whose header is damaged, is left as it is. Raises `TraceLockedError` while
    somebody writes, `TraceNotFoundError`.
    """
    path = Path(path)
    store = FileStore.open(path)
    try:
        data = store.read()
        Lines(data, path).check_kind()
        trace, backup, found = Trace(data, path=path), None, None
        while True:
            try:
                trace.check()
                break
            except TraceError as error:
                if not (isinstance(error, TraceCorruptError) and error.path == path):
                    break  # all of this file is whole; the run that it begins with is missing or damaged
                if not truncate_at_corruption or error.line <= 1:  # nothing would be left
                    raise
                found = found or error
                trace = Trace(data[: trace.line_offset(error.line)], path=path)
        if found is not None:
            backup = _copy(path)
        if len(data) > trace.size:
            store.truncate(trace.size)
            store.sync()
        return Repair(path, len(trace.records), len(data) - trace.size, backup, found)
    finally:
        store.close()


def _copy(path: Path) -> Path:
    """Copy the file to the first free name `<name>.bak`, `<name>.bak2`, … and wait until it is on the disk."""
    data, number = path.read_bytes(), 1
    while True:
        target = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        try:
            with open(target, "xb") as copy:
                copy.write(data)
                copy.flush()
                os.fsync(copy.fileno())
            return target
        except FileExistsError:
            number += 1
