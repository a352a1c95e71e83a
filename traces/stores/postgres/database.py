"""Connections to PostgreSQL, and work that survives the loss of one.

After a connection is lost, it is unknown whether the last append was committed. The writer then reads the head of the
run. If the head is where it was, the append is sent again. If it is where it should be, the append is done. If it is
further back, the server lost lines that had not reached its disk, and these are sent again, too. If another process has
moved it, this writer stops.

Any other transaction leaves a *receipt*: it stores its number in a row of its process, which commits with it. If the
answer to COMMIT is lost, the row says whether the transaction is done or must be repeated. PostgreSQL's own transaction
numbers cannot say that, because a server that crashed uses numbers again.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import psycopg

from ....errors import StoreError, TraceNotFoundError
from ....secret_table import without_password
from ..access import Access
from ..owner import new_owner
from ..sql.database import Facts, Head, Line, Row
from ..task_table import Lease
from .durability import may_wait, must_sync
from .prepared import PreparedStatements
from .tables import MARK, VERSION

log = logging.getLogger("refold")
PATIENCE = 30.0
"""For how many seconds a server that does not answer is tried again: a restart after a crash took up to four seconds
when measured."""
_PAUSE = 0.1
_RECEIPT = (
    "INSERT INTO documents (set_id, name, version, value) VALUES ('', {name}, {number}, "
    "EXTRACT(EPOCH FROM clock_timestamp())::text) ON CONFLICT (set_id, name) DO UPDATE SET "
)
"""A receipt is a document of no set (a set's id is never empty), so older stores have its table."""
_OLD_RECEIPTS = (
    "DELETE FROM documents WHERE set_id = '' AND name IN (SELECT name FROM documents WHERE set_id = '' AND "
    "value::float8 < EXTRACT(EPOCH FROM clock_timestamp()) - 86400 FOR UPDATE SKIP LOCKED)"
)
"""Removes receipts of ended processes; a process that is alive but idle for a day leaves a new one."""
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
_MOST_UNSYNCED = 256
"""After how many unsynced appends one waits for the disk all the same: these lines are kept in memory."""
R = TypeVar("R")

_FENCE = "AND EXISTS (SELECT 1 FROM tasks WHERE set_id = $10 AND key = $11 AND epoch = $12 AND status = 'running')"
_FEW = 8
"""Up to how many lines are sent as values; more are sent as arrays, so that one statement serves all numbers."""


@cache
def _append_statement(lines: int, *, fenced: bool, sync: bool) -> bytes:
    """Return the statement that advances a head and adds lines.

    It changes nothing if the head is not where it should be. With 0 lines, it takes them as arrays.
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
    """One append, as sent."""

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
        self._unsynced: dict[int, list[_Part]] = {}
        self._is_connected = False
        self._has_given_up = False
        """Whether the last attempt to connect waited in vain; the next one does not wait again."""
        self._name = new_owner()
        """The name of this process's receipts."""
        self._transactions = 0

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
        self._prepared = PreparedStatements(connection)
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
        """Run `work` in a transaction that may write; see `SqlDatabase`.

        After a lost connection, `work` is repeated on a new one, unless it was committed.
        """
        with self._locked():
            sent: list[tuple[int, R]] = []

            def attempt() -> R:
                if sent and self._receipt() == sent[0][0]:
                    return sent[0][1]
                connection = self._connection
                try:
                    connection.execute("BEGIN")
                    session = PostgresSession(connection)
                    if self._transactions == 0:
                        session.rows(_OLD_RECEIPTS)
                    result = work(session)
                    self._transactions += 1
                    sent[:] = [(self._transactions, result)]
                    connection.execute(self._commit(), prepare=False)  # two statements, in one round trip
                except BaseException:
                    self._roll_back(connection)
                    raise
                return result

            return self._patiently("written", attempt)

    def _commit(self) -> psycopg.sql.Composed:
        """Return the statements that end a transaction, its receipt first."""
        name, number = psycopg.sql.Literal(self._name), psycopg.sql.Literal(self._transactions)
        statement = psycopg.sql.SQL(_RECEIPT + "version = excluded.version, value = excluded.value; COMMIT")
        return statement.format(name=name, number=number)

    def _receipt(self) -> int:
        """Return the number of this process's last committed transaction.

        This waits for a transaction that is still under way, because it holds the row.
        """
        statement = _RECEIPT.format(name="%s", number="0") + "value = excluded.value RETURNING version"
        [(number,)] = self._connection.execute(statement.encode(), [self._name]).fetchall()
        return int(number)

    @staticmethod
    def _roll_back(connection: psycopg.Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")

    def _patiently(self, what: str, work: Callable[[], R]) -> R:
        """Run repeatable work; after a lost connection, run it again."""
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
        """Make the connection ready for the next statement."""
        if not self._is_connected:
            self._connect(time.monotonic() + PATIENCE)
        self._prepared.drain()

    def _reconnect(self, end: float) -> None:
        """Replace a lost connection; raises `StoreError` after the moment `end`."""
        with contextlib.suppress(psycopg.Error):
            self._connection.close()
        self._connect(end)

    # appends

    def append(
        self, head: Head, after: Head, lines: Sequence[Line], facts: Sequence[Facts], fence: Lease | None
    ) -> bool:
        """Append lines to a run; see `SqlDatabase`."""
        with self._locked():
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

        Returns False if the connection was lost just now. If the part is refused or lost, the next append of the run
        finds out, and sends it again or is refused, too.
        """
        try:
            self._own()
            self._prepared.send(*_statement_of(part))
        except psycopg.Error:
            return False
        return True

    def forget(self, number: int) -> None:
        """Drop the lines kept for a run whose writer is closed.

        No later append will find out whether the last one was lost with a connection, so this is checked here.
        """
        with self._locked():
            if earlier := self._unsynced.pop(number, None):
                self._settle(earlier[:-1], earlier[-1])

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
            if place == (part.after.seq, part.after.hash):  # also if an append of a lost connection arrived just now
                earlier.append(part)
                return True
            chain, refused = [*(each for each in earlier if each is not part), part], None if lost else rest[0]
            rest = next((chain[n:] for n, each in enumerate(chain) if (each.head.seq, each.head.hash) == place), [])
            if not rest or rest[0] is refused:  # the head is where it was, so the fence refused it
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

    def is_in_place(self) -> bool:
        """Return True: a server keeps its files."""
        return True

    def close(self) -> None:
        """Close the connection."""
        with self._locked():
            if self._is_connected:
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
