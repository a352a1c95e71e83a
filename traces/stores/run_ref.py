"""The place of one run in a store."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .protocol import TraceStore


@dataclass(frozen=True, slots=True)
class RunRef:
    """A run in a store, used in place of a path.

    `above` is the parent of a new child run.
    """

    store: "TraceStore"
    run_id: str
    above: str | None = None

    def beside(self, run_id: str, *, child: bool = False) -> "RunRef":
        """Return another run, or a new child, in the same store."""
        return RunRef(self.store, run_id, self.run_id if child else None)

    def __str__(self) -> str:
        return f"{self.store.url}#{self.run_id}"
