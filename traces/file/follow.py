"""A trace that is being written, read from record to record as it grows."""

from typing import Any

from .record import Record
from .writer import TraceWriter


class Follower:
    """Reads what a writer has written, each record once: a look costs what was written since the last one."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._offset = 0

    def follows(self, writer: TraceWriter) -> bool:
        """Say whether it reads what this writer writes."""
        return self._writer is writer

    def take(self) -> list[Record]:
        """Give the records that were written since the last look."""
        data = self._writer.read_from(self._offset)
        data = data[: data.rfind(b"\n") + 1]
        self._offset += len(data)
        return [Record.parse(line) for line in data.split(b"\n")[:-1]]

    def value(self, recorded: Any) -> Any:
        """Give what a recorded value stands for, as `Trace.value` does."""
        return self._writer.trace().value(recorded)
