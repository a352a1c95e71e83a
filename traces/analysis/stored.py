"""The relatives of a run in a store."""

from ..stores.copy import all_runs
from ..stores.protocol import TraceStore
from ..stores.run_row import RunFilter


def forks_in(store: TraceStore, run_id: str) -> list[str]:
    """Return the ids of a run's forks, oldest first."""
    return [row.run_id for row in all_runs(store, RunFilter(parent=run_id)) if row.parent_kind == "fork"][::-1]
