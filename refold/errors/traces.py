"""Errors of traces: their files, their records, and JSON Patches."""

from pathlib import Path
from typing import Any

from .families import ExternalError, TraceError


class TraceNotFoundError(TraceError):
    """A trace, or a blob of a trace, was not found; `path` is where refold looked for it."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class TraceExistsError(TraceError):
    """A new trace cannot be created at `path`, because a file exists there."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists already: give the run another id, or continue this trace with resume")
        self.path = path


class TraceLockedError(TraceError):
    """Another writer holds the trace at `path`; `pid` is its process, or None if the system does not say."""

    def __init__(self, path: Path | None, pid: int | None = None) -> None:
        who = f"process {pid}" if pid is not None else "another writer"
        what = str(path) if path is not None else "this in-memory trace"
        super().__init__(f"{what} is locked: {who} is writing to it; wait until that run has ended, or stop it first")
        self.path = path
        self.pid = pid


class TraceWriteError(TraceError):
    """A record could not be written (disk full, file gone, writer closed); the writer writes nothing after that."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class RecordError(TraceError):
    """A record given to the writer is not JSON: nothing was written, and the writer can still be used."""


class TraceCorruptError(TraceError):
    """A line of the trace is not what was written.

    `line` is the line's number, from 1 (0 for a blob); `expected` and `actual` are the value that should be there and
    the value that is.
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
        """Return the same error, with the path of the trace's file."""
        return TraceCorruptError(self.reason, self.line, path=path, expected=self.expected, actual=self.actual)


class MissingMemberError(TraceCorruptError, KeyError):
    """A record does not have the member that the caller asked for."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class NotATraceError(TraceCorruptError):
    """The given file is not a trace."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__("this is not a refold trace", 1, path=path)
        self.args = (f"{path or 'what was given'} is not a refold trace: it holds no record",)

    def at(self, path: Path | None) -> "NotATraceError":
        """Return the same error with the path of its file."""
        return NotATraceError(path)


class PatchError(TraceError):
    """A JSON Patch cannot be applied; `op` is the index of the bad operation, `pointer` the path in question."""

    def __init__(self, reason: str, op: int | None = None, pointer: str | None = None) -> None:
        where = "" if op is None else f"operation {op}: "
        super().__init__(f"{where}{reason}" if pointer is None else f"{where}{reason} at {pointer!r}")
        self.reason = reason
        self.op = op
        self.pointer = pointer


class ExportError(TraceError):
    """A trace cannot be exported so, or the file cannot be written; `path` is that file, if there is one."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class ExtraMissingError(ExternalError, ImportError):
    """A package of an extra is not installed; the message has the command that installs it."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: pip install 'refold[{extra}]'")
        self.extra = extra


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
