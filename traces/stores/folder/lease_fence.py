"""The check that a run in a folder may still be written.

A worker may write the run of a task while its lease holds. Another worker can only claim the task once `lease_until`
has passed by the clock of this machine: the database of a folder's sets is never on a network. So as long as the clock
is before the `lease_until` that was read last, the lease holds without another look at the database, which costs more
than the write of a record.
"""

from time import monotonic, time
from typing import TYPE_CHECKING

from ..task_table import Lease

if TYPE_CHECKING:
    from ..sqlite.database import SqliteDatabase

HOLDS_SECONDS = 1.0
"""For how long one look at the table is relied on, in seconds.

It bounds what a clock that was set back could hide: a worker that was stopped for longer looks again, whatever the
clock says.
"""
MARGIN_SECONDS = 0.05
"""How long before the end of a lease the table is asked each time; the clock of SQLite counts in milliseconds."""


class LeaseFence:
    """Raises `TraceTakenError` when called, if the lease is lost."""

    def __init__(self, database: "SqliteDatabase", lease: Lease) -> None:
        self._database = database
        self._lease = lease
        self._looked = -HOLDS_SECONDS
        self._until = 0.0

    def __call__(self) -> None:
        """Ask the table, unless its last answer still holds."""
        if monotonic() - self._looked < HOLDS_SECONDS and time() < self._until:
            return
        from ..sql.tasks import check_lease

        looked = monotonic()
        self._until = check_lease(self._database, self._lease) - MARGIN_SECONDS
        self._looked = looked
