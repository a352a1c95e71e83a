"""The store in a PostgreSQL database."""

from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ...errors import UsageError
from ...secret_table import without_password
from ..access import Access
from ..beats import Beats
from ..protocol import Grouping
from ..run_row import RunFilter, Total
from ..sql.database import Session
from ..sql.run_writer import SqlRun
from ..sql.store import SqlStore
from ..task_table import Lease
from .database import PostgresDatabase
from .tables import FOLD, TABLES

SCHEMA = "refold"
_MANY = 1000
"""From how many changes of the totals on a reader merges them; until then, each reader adds them up."""


class PostgresStore(SqlStore):
    """Traces, runs and sets in a PostgreSQL schema.

    Many machines can use it at once.
    """

    def __init__(
        self, database: PostgresDatabase, lease: Lease | None = None, beats: Beats[SqlRun] | None = None
    ) -> None:
        super().__init__(database, lease, beats)
        self._postgres = database

    @classmethod
    def at(cls, url: str, access: Access = "create") -> "PostgresStore":
        """Open the database of a libpq URL.

        `schema=NAME` in the URL selects a schema other than `refold`. Raises `UsageError` for an invalid name.
        """
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        schema = next((value for name, value in options if name == "schema"), SCHEMA)
        if not schema.isidentifier() or schema != schema.lower() or len(schema) > 63:
            raise UsageError(f"{schema!r} is no name for a schema: use lower-case letters, digits and underscores")
        rest = urlencode([(name, value) for name, value in options if name != "schema"])
        dsn = urlunsplit(("postgresql", parts.netloc, parts.path, rest, ""))
        if not parts.netloc:  # urlunsplit leaves the slashes out
            dsn = dsn.replace("postgresql:", "postgresql://", 1)
        return cls(PostgresDatabase(dsn, schema, without_password(url), TABLES, access))

    def totals(self, by: Sequence[Grouping] = ("status",), where: RunFilter | None = None) -> list[Total]:
        """Return the stored sums of each group."""
        [(changes,)] = self._postgres.rows(f"SELECT COUNT(*) FROM (SELECT 1 FROM totals_changes LIMIT {_MANY}) AS new")
        if changes == _MANY and not self._postgres.is_read_only:
            self._postgres.write(_fold)
        return super().totals(by, where)

    def _close(self) -> None:
        self._postgres.close()


def _fold(session: Session) -> None:
    """Bring the totals up to date, unless another process is doing so."""
    if session.rows("SELECT 1 WHERE pg_try_advisory_xact_lock(hashtext('refold totals'))"):
        session.rows(FOLD)
