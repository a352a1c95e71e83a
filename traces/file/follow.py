"""Reads a trace while it is being written."""

from typing import Any

from .record import Record
from .writer import TraceWriter


class Follower:
    """Reads each record of a writer once.

    A call of `take` reads only what was written since the last call.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._offset = 0

    def follows(self, writer: TraceWriter) -> bool:
        """Return whether this follower reads the trace of `writer`."""
        return self._writer is writer

    def take(self) -> list[Record]:
        """Return the records written since the last call."""
        data = self._writer.read_from(self._offset)
        data = data[: data.rfind(b"\n") + 1]
        self._offset += len(data)
        return [Record.parse(line) for line in data.split(b"\n")[:-1]]

    def value(self, recorded: Any) -> Any:
        """Return a recorded value with its blob loaded, as `Trace.value` does."""
        return self._writer.trace().value(recorded)
