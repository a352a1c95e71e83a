"""A cursor that goes forward and back through a run; it shows what was recorded and computes nothing anew."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .step import Step
from .trace import Trace, as_trace


class Replay:
    """A place between the steps of a trace, from 0 (before the first) to `len(trace.steps)` (after the last).

    Iterating goes forward from where it stands. Documents are shared with the steps: look at them, don't change them.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.position = 0
        """How many steps lie behind."""

    def next(self) -> Step | None:
        """Go over the next step and give it; None, and no move, at the end."""
        if self.position >= len(self):
            return None
        self.position += 1
        return self.trace.steps[self.position - 1]

    def back(self) -> Step | None:
        """Go back over the last step and give it; None, and no move, at the beginning."""
        if self.position <= 0:
            return None
        self.position -= 1
        return self.trace.steps[self.position]

    def seek(self, position: int) -> None:
        """Go to a place; -1 is the end. Raises `IndexError` beyond the ends."""
        place = position + len(self) + 1 if position < 0 else position
        if not 0 <= place <= len(self):
            raise IndexError(f"the trace has places 0 to {len(self)}, not {position}")
        self.position = place

    @property
    def state(self) -> Any:
        """The document at this place: what `trace.state(position)` gives."""
        return self.trace.shared_state(self.position)

    def __iter__(self) -> Iterator[Step]:
        while (step := self.next()) is not None:
            yield step

    def __len__(self) -> int:
        return len(self.trace.steps)


def replay(trace: Trace | Path | str, traces: Path | str = "runs") -> Replay:
    """Open a cursor at the beginning of a trace: a `Trace`, a file's path, or a run id in the folder `traces`."""
    return Replay(as_trace(trace, traces))
