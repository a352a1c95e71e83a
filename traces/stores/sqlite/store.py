"""The store in one SQLite file."""

from pathlib import Path

from ..access import Access
from ..beats import Beats
from ..protocol import Durability
from ..sql.run_writer import SqlRun
from ..sql.store import SqlStore
from ..sql.tables import RUNS, TASKS, TOTALS
from ..task_table import Lease
from .database import SqliteDatabase

_ADD = (
    "INSERT INTO totals (set_id, model, status, runs, tokens, cost) "
    "VALUES (NEW.set_id, NEW.model, NEW.status, 1, NEW.tokens, COALESCE(NEW.cost, 0)) "
    "ON CONFLICT (set_id, model, status) DO UPDATE SET runs = runs + 1, tokens = tokens + excluded.tokens, "
    "cost = cost + excluded.cost;"
)
_SUBTRACT = (
    "UPDATE totals SET runs = runs - 1, tokens = tokens - OLD.tokens, cost = cost - COALESCE(OLD.cost, 0) "
    "WHERE set_id = OLD.set_id AND model = OLD.model AND status = OLD.status;"
)
_TRIGGERS = (
    f"CREATE TRIGGER IF NOT EXISTS run_added AFTER INSERT ON runs BEGIN {_ADD} END",
    "CREATE TRIGGER IF NOT EXISTS run_changed AFTER UPDATE OF set_id, model, status, tokens, cost ON runs "
    f"BEGIN {_SUBTRACT} {_ADD} END",
    f"CREATE TRIGGER IF NOT EXISTS run_removed AFTER DELETE ON runs BEGIN {_SUBTRACT} END",
)
_TABLES = tuple(
    statement.format(serial="INTEGER", key="INTEGER", bytes="BLOB") for statement in (*TASKS, *RUNS, TOTALS)
)


class SqliteStore(SqlStore):
    """Traces, runs and sets in one SQLite database in WAL mode.

    Many processes of one machine can use it at once. Copy it with `Connection.backup` or `refold traces copy`: the file
    alone lacks what is still in the WAL file beside it.
    """

    def __init__(
        self, database: "SqliteDatabase", lease: Lease | None = None, beats: Beats[SqlRun] | None = None
    ) -> None:
        super().__init__(database, lease, beats)
        self._sqlite = database

    @classmethod
    def at(cls, path: Path, access: Access = "create") -> "SqliteStore":
        """Open or create the database; raises `StoreError`."""
        return cls(SqliteDatabase(path, (*_TABLES, *_TRIGGERS), access))

    def _choose(self, durability: Durability) -> None:
        if durability == "power":
            self._sqlite.sync_commits()

    def _close(self) -> None:
        self._sqlite.close()
