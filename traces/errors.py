"""What can be wrong with a trace: each error says what, where, and what to do next."""

from pathlib import Path
from typing import Any

from ..errors import RefoldError


class TraceError(RefoldError):
    """The base of everything that `refold.traces` raises."""


class TraceNotFoundError(TraceError):
    """There is no trace, or no blob of a trace, where one was looked for; `path` says where."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class TraceExistsError(TraceError):
    """A new trace was to be created at `path`, where a file stands already."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists already: give the run another id, or continue this trace with resume")
        self.path = path


class TraceLockedError(TraceError):
    """Somebody else is writing to the trace at `path`; `pid` is the process that does, where the system tells."""

    def __init__(self, path: Path | None, pid: int | None = None) -> None:
        who = f"process {pid}" if pid is not None else "another writer"
        what = str(path) if path is not None else "this in-memory trace"
        super().__init__(f"{what} is locked: {who} is writing to it; wait until that run has ended, or stop it first")
        self.path = path
        self.pid = pid


class TraceWriteError(TraceError):
    """A record could not be written (disk full, file gone, writer closed); nothing more is written after it."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class RecordError(TraceError):
    """A record that was given to the writer is not JSON; nothing was written, and the writer goes on."""


class TraceCorruptError(TraceError):
    """A line of the trace is not what was written.

    `line` is its number, from 1; `expected` and `actual` are what should stand there and what does.
    """

    def __init__(
        self, reason: str, line: int, *, path: Path | None = None, expected: Any = None, actual: Any = None
    ) -> None:
        where = f"{path}, line {line}" if path is not None else f"line {line}"
        facts = "" if expected is None and actual is None else f" (expected {_short(expected)}, got {_short(actual)})"
        super().__init__(
            f"{where}: {reason}{facts}; restore the file from a copy"
            + (
                ", or keep what stands before that line with `refold trace repair --truncate-at-corruption`"
                * (line > 1)
            )
        )
        self.reason = reason
        self.line = line
        self.path = path
        self.expected = expected
        self.actual = actual

    def at(self, path: Path | None) -> "TraceCorruptError":
        """Give the same error with the path of its file."""
        return TraceCorruptError(self.reason, self.line, path=path, expected=self.expected, actual=self.actual)


class MissingMemberError(TraceCorruptError, KeyError):
    """A record lacks a member that was asked for."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class NotATraceError(TraceCorruptError):
    """A file that was given as a trace is something else."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__("this is not a refold trace", 1, path=path)
        self.args = (f"{path or 'what was given'} is not a refold trace: it holds no record",)

    def at(self, path: Path | None) -> "NotATraceError":
        """Give the same error with the path of its file."""
        return NotATraceError(path)


class PatchError(TraceError):
    """A JSON Patch that can't be applied; `op` is the index of the operation, `pointer` the path it was about."""

    def __init__(self, reason: str, op: int | None = None, pointer: str | None = None) -> None:
        where = "" if op is None else f"operation {op}: "
        super().__init__(f"{where}{reason}" if pointer is None else f"{where}{reason} at {pointer!r}")
        self.reason = reason
        self.op = op
        self.pointer = pointer


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
