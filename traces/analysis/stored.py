"""The relatives of a run in a store."""

from ..stores.protocol import TraceStore
from ..stores.run_row import RunFilter


def forks_in(store: TraceStore, run_id: str) -> list[str]:
    """Return the ids of a run's forks, oldest first."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = store.runs(RunFilter(parent=run_id), after=after)
        found += [row.run_id for row in page.rows if row.parent_kind == "fork"]
        after = page.next
        if after is None:
            return found[::-1]
