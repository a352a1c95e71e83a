"""Connections to PostgreSQL, and work that survives the loss of one.

Each append names the record that it follows. After a lost connection, it is sent again on a new one: if the server
refuses it, and the head of the run is where the append leads, the first one has arrived. If the server has lost records
that had not reached its disk, the append is refused, and the run is resumed from what is there. Any other transaction
is repeated until its COMMIT is sent. If the answer to that is lost, the transaction raises `StoreError`.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from ...errors import StoreError, TraceNotFoundError
from ...secret_table import without_password
from ..access import Access
from ..sql.database import Facts, Head, Line, Row, advance
from ..task_table import Lease
from .tables import MARK, VERSION

log = logging.getLogger("refold")
PATIENCE = 30.0
"""For how many seconds a server that does not answer is tried again: a restart after a crash took up to four seconds
when measured."""
_PAUSE = 0.1
_END_BACKEND = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND backend_start::text = %s"
)
"""Ends the server's side of a lost connection, which may hold locks until it notices the loss.

The statement waits at most five seconds for that: work that skips locked rows would otherwise skip the rows for which
it is repeated. Needs PostgreSQL 14.
"""
_READ_ONLY = (
    "; this server takes no writes now (it is a standby, or was made read-only): name the server that does, or wait "
    "until this one does, and start this command again"
)
_LOSABLE = frozenset((b"decide", b"commit", b"snapshot", b"event"))
"""The kinds of record that need not be on the disk before the run continues.

They are sent with `synchronous_commit` off: a crash of the server loses the newest of them, though never one without
all later ones, and the resumed run computes them again. An effect starts once its intent is on the disk: a call that
has cost something is never forgotten.
"""
_QUICK = "quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
R = TypeVar("R")


class PostgresSession:
    """One transaction on the connection."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Execute a statement and return its rows."""
        cursor = self._connection.execute(_placed(sql), values)
        return cursor.fetchall() if cursor.description is not None else []

    def many(self, sql: str, values: Sequence[Sequence[Any]]) -> int:
        """Execute a statement once per row; return the number of changed rows."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_placed(sql), values)
            return max(0, cursor.rowcount)


class PostgresDatabase:
    """One process's connections to the store's schema, for any thread."""

    NOW = "EXTRACT(EPOCH FROM clock_timestamp())::float8"
    SKIP_LOCKED = "FOR UPDATE SKIP LOCKED"
    FOR_UPDATE = "FOR UPDATE"

    def __init__(self, dsn: str, schema: str, url: str, tables: Sequence[str], access: Access = "create") -> None:
        """Connect, and create missing tables; raises `StoreError`.

        With another access than "create", missing tables raise `TraceNotFoundError`.
        """
        self.url = url
        self.is_read_only = access == "read"
        self._dsn = dsn
        self._schema = schema
        self._abandoned: list[psycopg.Connection] = []
        self._backend: tuple[int, str] | None = None
        """The server process behind the connection, and when it started."""
        self._begin()
        self._connect(time.monotonic() + (0 if self.is_read_only else PATIENCE), is_first=True)
        try:
            self._patiently("prepared", lambda: self._prepare(tables, access))
        except BaseException:
            self._connection.close()
            raise

    def _begin(self) -> None:
        """Start the state of this process, without a connection."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._is_connected = False
        self._has_given_up = False
        """Whether the last attempt to connect waited in vain; the next one does not wait again."""

    def _locked(self) -> threading.RLock:
        """Return the lock of this process.

        A forked process connects anew, because a connection belongs to the process that opened it. The forked process
        has a new lock, because another thread may have held the lock during the fork.
        """
        if self._pid != os.getpid():
            self._abandoned.append(self._connection)  # closing it would end the other process's session
            self._backend = None
            self._begin()
        return self._lock

    def _connect(self, end: float, *, is_first: bool = False) -> None:
        """Connect to the server.

        A server that does not answer is tried again until the moment `end`, because it may be restarting. If it refuses
        the first connection, for example for a wrong password, the error is raised at once. So is the error of a server
        for which the work before has already waited in vain: otherwise each of the many small things at the end of a
        run would wait. Raises `StoreError`.
        """
        is_waiting = False
        while True:
            try:
                return self._connect_once()
            except psycopg.Error as error:
                failed = self._failed("reached", error)
                if time.monotonic() > end or self._has_given_up or (is_first and _is_refusal(error)):
                    self._has_given_up = True
                    raise failed from error
            if not is_waiting:
                log.warning("%s; trying again for %d seconds", failed, end - time.monotonic())
            is_waiting = True
            time.sleep(_PAUSE)

    def _connect_once(self) -> None:
        connection = psycopg.connect(self._dsn, autocommit=True)
        try:
            connection.execute("SELECT set_config('search_path', %s, false)", [self._schema])
            if self._backend is not None:
                connection.execute(_END_BACKEND, self._backend)
            if self.is_read_only:
                connection.execute("SET default_transaction_read_only = on")
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = "
                "'off'"
            )
            [(pid, start, mark)] = connection.execute(
                "SELECT pid, backend_start::text, obj_description(to_regclass(%s), 'pg_class') FROM pg_stat_activity "
                "WHERE pid = pg_backend_pid()",
                [f"{self._schema}.heads"],
            ).fetchall()
            self._refuse_newer(mark)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._backend = pid, start
        self._is_connected, self._has_given_up = True, False

    def _refuse_newer(self, mark: str | None) -> None:
        """Raise `StoreError` if the tables are a newer refold's."""
        version = (mark or "").removeprefix(MARK)
        if version.isdecimal() and int(version) > VERSION:
            raise StoreError(
                f"{self.url} was made by a newer refold: its tables have version {version}, this refold's have "
                f"{VERSION}; upgrade refold"
            )

    def _prepare(self, tables: Sequence[str], access: Access) -> None:
        [(there,)] = self._connection.execute("SELECT to_regclass(%s)", [f"{self._schema}.totals"]).fetchall()
        if there is not None:
            return
        if access != "create":
            raise TraceNotFoundError(f"{self.url} has no tables of refold in the schema {self._schema}")
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"refold {self._schema}"])
            self._connection.execute(
                psycopg.sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(psycopg.sql.Identifier(self._schema))
            )
            for statement in tables:
                self._connection.execute(statement.encode())

    def _failed(self, what: str, error: psycopg.Error) -> StoreError:
        hint = _READ_ONLY if isinstance(error, psycopg.errors.ReadOnlySqlTransaction) else ""
        return StoreError(f"{self.url} cannot be {what}: {without_password(str(error)).strip()}{hint}")

    # transactions

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query.

        After a lost connection, the query is repeated on a new one.
        """
        with self._locked():
            return self._patiently("read", lambda: PostgresSession(self._connection).rows(sql, values))

    def write(self, work: Callable[[PostgresSession], R]) -> R:
        """Run `work` in a transaction that may write; see `SqlDatabase`."""
        is_committing = False

        def attempt() -> R:
            nonlocal is_committing
            if is_committing:
                raise StoreError(
                    f"{self.url} may have been written, or not: the connection was lost before the answer to a COMMIT; "
                    "check what is there, and start this command again"
                )
            with self._connection.transaction():
                result = work(PostgresSession(self._connection))
                is_committing = True
            return result

        with self._locked():
            return self._patiently("written", attempt)

    def _patiently(self, what: str, work: Callable[[], R]) -> R:
        """Run repeatable work; after a lost connection, run it again."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if not self._is_connected:
                    self._connect(end)
                return work()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_lost(self._connection):
                    raise self._failed(what, error) from error
                self._connection.close()
                self._is_connected = False
            except psycopg.Error as error:
                raise self._failed(what, error) from error

    # appends

    def append(
        self, head: Head, after: Head, lines: Sequence[Line], facts: Sequence[Facts], fence: Lease | None
    ) -> bool:
        """Append lines to a run; see `SqlDatabase`."""
        is_losable = all(line.kind in _LOSABLE for line in lines)
        guard = advance(head, after, fence)
        quick, counted = (", " + _QUICK, ", (SELECT COUNT(*) FROM quick)") if is_losable else ("", "")
        rows = ", ".join(["(?::bigint, ?::bigint, %b::bytea)"] * len(lines))
        statement = (
            f"WITH guard AS ({guard.sql} RETURNING 1), added AS (INSERT INTO records (id, ends_at, line) "
            f"SELECT i, e, l FROM guard, (VALUES {rows}) AS lines(i, e, l)){quick} "
            f"SELECT (SELECT COUNT(*) FROM guard){counted}"
        )
        values = [*guard.values, *(value for line in lines for value in (line.id, line.end, line.raw))]

        def attempt() -> bool:
            session = PostgresSession(self._connection)
            with self._connection.transaction() if facts else contextlib.nullcontext():
                if session.rows(statement, values)[0][0] == 1:
                    for fact in facts:
                        session.rows(fact.sql, fact.values)
                    return True
            at = "SELECT 1 FROM heads WHERE number = ? AND epoch = ? AND last_seq = ? AND last_hash = ?"
            return bool(session.rows(at, [after.number, after.epoch, after.seq, after.hash]))

        with self._locked():
            return self._patiently("written", attempt)

    def is_in_place(self) -> bool:
        """Return True: a server keeps its files."""
        return True

    def close(self) -> None:
        """Close the connection."""
        with self._locked():
            if self._is_connected:
                self._connection.close()

    def __del__(self) -> None:
        """Close the connection of a store that was dropped without being closed."""
        if hasattr(self, "_connection"):
            self.close()


def _is_refusal(error: psycopg.Error) -> bool:
    """Return whether a server refuses a connection for good.

    A restarting server refuses connections for a moment, too. libpq only has a text to distinguish the two: a server's
    own error has two spaces after its severity. (`PGconn.ping` would know more, but stops all threads of this process
    until the server answers.)
    """
    text = str(error)
    is_servers = ":  " in text and "the database system is" not in text  # starting up, shutting down, in recovery
    is_unknown_host = text.startswith(("failed to resolve host", "[Errno -"))  # getaddrinfo's numbers are negative
    return not isinstance(error, psycopg.OperationalError) or is_servers or is_unknown_host


def _is_lost(connection: psycopg.Connection) -> bool:
    """Return whether a connection can no longer be used."""
    return connection.closed or connection.broken


def _placed(sql: str) -> bytes:
    """Return a statement of `traces.stores.sql` in psycopg's form."""
    return sql.replace("?", "%s").encode()
