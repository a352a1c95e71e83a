"""The place of one run in a store."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .protocol import TraceStore


@dataclass(frozen=True, slots=True)
class RunRef:
    """A run in a store, in the place of a path.

    `above` is the run's parent, if it is a new child run.
    """

    store: "TraceStore"
    run_id: str
    above: str | None = None

    def beside(self, run_id: str, *, child: bool = False) -> "RunRef":
        """Return the place of another run of the same store.

        `child` says that it is a new child of this run.
        """
        return RunRef(self.store, run_id, self.run_id if child else None)

    def __str__(self) -> str:
        return f"{self.store.url}#{self.run_id}"
