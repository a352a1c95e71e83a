"""Connections to PostgreSQL, and appends that survive the loss of one.

After a connection is lost, nobody knows whether the last append was committed. The writer then looks at the head of the
run: it is where it was (send again), where it should be (done), further back (the server lost what had not reached its
disk: send that again, too), or somebody else's (stop).
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import psycopg

from ....errors import StoreError, TraceNotFoundError
from ..access import Access
from ..sql.database import Facts, Head, Line, Row
from ..task_table import Lease
from ..url_text import without_password
from .durability import may_wait, must_sync
from .prepared import PreparedStatements

PATIENCE = 30.0
"""Seconds for which a lost connection is tried again: a restart after a crash took up to four seconds when measured."""
_PAUSE = 0.1
_MOST_UNSYNCED = 256
"""After how many appends without a flush one waits for the disk all the same: these lines are kept in memory."""
R = TypeVar("R")

_FENCE = "AND EXISTS (SELECT 1 FROM tasks WHERE set_id = $10 AND key = $11 AND epoch = $12 AND status = 'running')"
_FEW = 8
"""Up to how many lines are values of their own; more are sent as arrays, of which one statement serves all numbers."""


@cache
def _append_statement(lines: int, *, fenced: bool, sync: bool) -> bytes:
    """Return the statement that advances a head and adds lines.

    The statement changes nothing if the head is not where it should be. With 0 lines, it takes them as arrays.
    """
    before = 12 if fenced else 9
    rows = ", ".join(
        f"(${n}::bigint, ${n + 1}::bigint, ${n + 2}::bytea)" for n in range(before + 1, before + 1 + 3 * lines, 3)
    )
    arrays = f"unnest(${before + 1}::bigint[], ${before + 2}::bigint[], ${before + 3}::bytea[])"
    quick = "" if sync else ", quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))"
    return (
        "WITH guard AS (UPDATE heads SET last_seq = $1, last_hash = $2, size = $3, steps = $4, changed = $5 "
        f"WHERE number = $6 AND last_seq = $7 AND last_hash = $8 AND epoch = $9 {_FENCE if fenced else ''} "
        "RETURNING 1), added AS (INSERT INTO records (id, ends_at, line) SELECT i, e, l FROM guard, "
        f"{f'(VALUES {rows})' if lines else arrays} AS lines(i, e, l)){quick} SELECT (SELECT COUNT(*) FROM guard)"
        + ("" if sync else ", (SELECT COUNT(*) FROM quick)")
    ).encode()


def _array(values: Iterable[object]) -> str:
    return f"{{{','.join(map(str, values))}}}"


@dataclass(frozen=True, slots=True)
class _Part:
    """One append, as it was sent."""

    head: Head
    after: Head
    lines: Sequence[Line]
    facts: Sequence[Facts]
    fence: Lease | None
    sync: bool


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
    """The connections of one process to the store's schema.

    The methods may be called from any thread.
    """

    NOW = "EXTRACT(EPOCH FROM clock_timestamp())::float8"
    SKIP_LOCKED = "FOR UPDATE SKIP LOCKED"
    FOR_UPDATE = "FOR UPDATE"

    def __init__(self, dsn: str, schema: str, url: str, tables: Sequence[str], access: Access = "create") -> None:
        """Connect, and make the tables if they are not there; raises `StoreError`.

        With another access than "create", missing tables raise `TraceNotFoundError`.
        """
        self.url = url
        self.is_read_only = access == "read"
        self._dsn = dsn
        self._schema = schema
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._unsynced: dict[int, list[_Part]] = {}
        self._abandoned: list[psycopg.Connection] = []
        self._use(self._connect())
        try:
            self._prepare(tables, access)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, psycopg.Error):
                raise self._failed("prepared", error) from error
            raise

    def _use(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._prepared = PreparedStatements(connection)

    def _connect(self) -> psycopg.Connection:
        try:
            connection = psycopg.connect(self._dsn, autocommit=True)
            connection.execute("SELECT set_config('search_path', %s, false)", [self._schema])
            if self.is_read_only:
                connection.execute("SET default_transaction_read_only = on")
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = "
                "'off'"
            )
        except psycopg.Error as error:
            raise self._failed("reached", error) from error
        return connection

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
        return StoreError(f"{self.url} cannot be {what}: {without_password(str(error)).strip()}")

    # transactions

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query.

        After a lost connection, the query is repeated on a new one.
        """
        with self._lock:
            return self._patiently("read", lambda: PostgresSession(self._connection).rows(sql, values))

    @contextlib.contextmanager
    def write(self) -> Iterator[PostgresSession]:
        """Open a transaction that may write.

        If the connection is lost within it, `StoreError` says that nobody knows whether it was committed.
        """
        with self._lock:
            self._patiently("written", lambda: self._connection.execute("BEGIN"))
            connection = self._connection
            try:
                yield PostgresSession(connection)
                connection.execute("COMMIT")
            except psycopg.Error as error:
                self._roll_back(connection)
                raise self._failed("written", error) from error
            except BaseException:
                self._roll_back(connection)
                raise

    @staticmethod
    def _roll_back(connection: psycopg.Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")

    def _patiently(self, what: str, work: Callable[[], R]) -> R:
        """Do work that can be repeated.

        After a lost connection, the work is repeated on a new one.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._own()
                return work()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_lost(self._connection):
                    raise self._failed(what, error) from error
                self._reconnect(end)
            except psycopg.Error as error:
                raise self._failed(what, error) from error

    def _own(self) -> None:
        """Make the connection ready for the next statement.

        A forked process connects anew, as a connection belongs to the process that opened it.
        """
        if self._pid != os.getpid():
            self._abandoned.append(self._connection)  # closing it would end the other process's session
            self._pid, self._unsynced = os.getpid(), {}
            self._use(self._connect())
        self._prepared.drain()

    def _reconnect(self, end: float) -> None:
        """Replace a lost connection; raises `StoreError` after the end of patience."""
        with contextlib.suppress(psycopg.Error):
            self._connection.close()
        while True:
            try:
                self._use(self._connect())
                return
            except StoreError:
                if time.monotonic() > end:
                    raise
                time.sleep(_PAUSE)

    # appends

    def append(
        self, head: Head, after: Head, lines: Sequence[Line], facts: Sequence[Facts], fence: Lease | None
    ) -> bool:
        """Append lines to a run; see `SqlDatabase`."""
        with self._lock:
            earlier = self._unsynced.setdefault(head.number, [])
            sync = len(earlier) >= _MOST_UNSYNCED or any(must_sync(line) for line in lines)
            part = _Part(head, after, lines, facts, fence, sync)
            if not sync and not facts and all(may_wait(line) for line in lines) and self._sent(part):
                earlier.append(part)
                return True
            done = self._settle(earlier, part)
            if done and sync:
                del self._unsynced[head.number]
            return done

    def _sent(self, part: _Part) -> bool:
        """Send a part without waiting for its result.

        If it is refused or lost, the next append of the run finds that out: it sends it again, or is refused, too.
        Returns False if the connection was lost just now.
        """
        try:
            self._own()
            self._prepared.send(*_statement_of(part))
        except psycopg.Error:
            return False
        return True

    def forget(self, number: int) -> None:
        """Drop the lines kept for a run whose writer is closed."""
        with self._lock:
            self._unsynced.pop(number, None)

    def _settle(self, earlier: list[_Part], part: _Part) -> bool:
        """Send a part until it is known to be written or refused."""
        end = time.monotonic() + PATIENCE
        rest = [part]
        while rest:
            lost = False
            try:
                self._own()
                if self._send(rest[0]):
                    sent = rest.pop(0)
                    if sent not in earlier:
                        earlier.append(sent)
                    continue
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not _is_lost(self._connection):
                    raise self._failed("written", error) from error
                lost = True
                self._reconnect(end)
            except psycopg.Error as error:
                raise self._failed("written", error) from error
            there = self.rows("SELECT epoch, last_seq, last_hash FROM heads WHERE number = ?", [part.head.number])
            if not there or there[0][0] != part.head.epoch:
                return False
            place = there[0][1:]
            if lost and place == (part.after.seq, part.after.hash):
                earlier.append(part)
                return True
            chain, refused = [*(each for each in earlier if each is not part), part], None if lost else rest[0]
            rest = next((chain[n:] for n, each in enumerate(chain) if (each.head.seq, each.head.hash) == place), [])
            if not rest or rest[0] is refused:  # though the head is where it was: by the fence
                return False
        return True

    def _send(self, part: _Part) -> bool:
        statement, values = _statement_of(part)
        if not part.facts:
            return self._prepared.first(statement, values) == 1
        with self._connection.transaction():
            if self._prepared.first(statement, values) != 1:
                return False
            session = PostgresSession(self._connection)
            for fact in part.facts:
                session.rows(fact.sql, fact.values)
        return True

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._pid == os.getpid():
                with contextlib.suppress(psycopg.Error):
                    self._prepared.drain()
                self._connection.close()

    def __del__(self) -> None:
        """Close the connection of a store that was dropped without being closed."""
        if hasattr(self, "_connection"):
            self.close()


def _statement_of(part: _Part) -> tuple[bytes, list[Any]]:
    """Return the statement of an append, and its values."""
    head, after, fence = part.head, part.after, part.fence
    values: list[Any] = [after.seq, after.hash, after.size, after.steps, after.changed]
    values += [head.number, head.seq, head.hash, head.epoch]
    if fence is not None:
        values += [fence.set_id, fence.key, fence.epoch]
    few = len(part.lines) <= _FEW
    if few:
        for line in part.lines:
            values += [line.id, line.end, line.raw]
    else:
        values += [_array(line.id for line in part.lines), _array(line.end for line in part.lines)]
        values.append(_array(f'"\\\\x{line.raw.hex()}"' for line in part.lines))
    return _append_statement(len(part.lines) if few else 0, fenced=fence is not None, sync=part.sync), values


def _is_lost(connection: psycopg.Connection) -> bool:
    """Return whether a connection can no longer be used."""
    return connection.closed or connection.broken


def _placed(sql: str) -> bytes:
    """Return a statement of `traces.stores.sql` in psycopg's form."""
    return sql.replace("?", "%s").encode()
