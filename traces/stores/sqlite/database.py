"""An SQLite database in WAL mode, for many threads and processes."""

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...errors import StoreError, TraceNotFoundError
from ..access import Access
from ..sql.database import Facts, Head, Line, Row, advance
from ..task_table import Lease
from ..url_text import in_url
from .ownership import MARKS, check_owner, connect_to_read, refuse_newer, restrict

R = TypeVar("R")
_BUSY = 30.0
"""Seconds to wait for another process's transaction. SQLite's waiting is not fair: 16 writers waited 0.3 s at most, and
a machine may be a hundred times slower."""
_NETWORK = frozenset(
    ("9p", "afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "lustre", "nfs", "nfs4", "smb3", "smbfs")
)
"""File systems on which the shared memory of WAL mode does not work between machines."""


_NO_RIGHTS = "make the file and its folder writable, or work on a copy"
_HELD = "another program holds it: wait until that has ended, or end it, and start this command again"
_DAMAGED = "restore the file from a copy"
_REMEDIES = {
    sqlite3.SQLITE_READONLY: _NO_RIGHTS,
    sqlite3.SQLITE_CANTOPEN: _NO_RIGHTS,  # in its folder, SQLite makes other files
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_FULL: "make room on its disk, and start this command again",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: f"name another file, or {_DAMAGED}",
}
"""What to do about SQLite's errors, by their primary code."""
_ADD = "INSERT INTO records (id, ends_at, line) VALUES (?, ?, ?)"


class SqliteSession:
    """One transaction on the connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Execute a statement and return its rows."""
        return self._connection.execute(sql, values).fetchall()

    def many(self, sql: str, values: Sequence[Sequence[Any]]) -> int:
        """Execute a statement once per row; return the number of changed rows."""
        return self._connection.executemany(sql, values).rowcount


class SqliteDatabase:
    """An open database with the given tables.

    Any thread may call its methods. One connection reads and another one writes, so that a page of a list does not wait
    for an append.
    """

    NOW = "((julianday('now') - 2440587.5) * 86400.0)"
    SKIP_LOCKED = FOR_UPDATE = ""  # BEGIN IMMEDIATE admits one writer at a time

    def __init__(self, path: Path, tables: Sequence[str], access: Access = "create") -> None:
        """Open or create the database.

        Raises `StoreError`, or `TraceNotFoundError` if there is none to open.
        """
        self.path = path
        self._tables = tables
        self._access = access
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._reading = threading.RLock()
        self._writer, self._reader = self._open()
        self._files = self._identities()

    @property
    def url(self) -> str:
        """The address of the store."""
        return f"sqlite:///{in_url(self.path)}"

    def _open(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        if self._access != "create" and not self.path.exists():
            raise TraceNotFoundError(f"there is no database {self.path}", self.path)
        try:
            if self._access == "read":
                check_owner(self.path, self._tables, self._names)
                return self._connect_to_read(), self._connect_to_read()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            refuse_network(self.path.parent)
            check_owner(self.path, self._tables)
            writer = self._connect()
            try:
                [(mode,)] = writer.execute("PRAGMA journal_mode=WAL").fetchall()
                if mode != "wal":
                    raise StoreError(f"{self.path} cannot use SQLite's WAL mode (it has {mode}); choose another disk")
                writer.execute("PRAGMA synchronous=NORMAL")
                writer.execute("BEGIN IMMEDIATE")
                refuse_newer(writer, self.path)  # another process may have changed the tables since `check_owner`
                for statement in (*self._tables, *MARKS):
                    writer.execute(statement)
                writer.execute("COMMIT")
                reader = self._connect()
            except BaseException:
                writer.close()
                raise
        except sqlite3.DatabaseError as error:
            raise self._failed("opened as an SQLite database", error) from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be opened: {error.strerror}") from error
        return writer, reader

    def _failed(self, what: str, error: sqlite3.Error) -> StoreError:
        remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        return StoreError(f"{self.path} cannot be {what}: {error}{f'; {remedy}' if remedy is not None else ''}")

    def _connect(self) -> sqlite3.Connection:
        return restrict(sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None, check_same_thread=False))

    def _connect_to_read(self) -> sqlite3.Connection:
        connection = connect_to_read(self.path, _BUSY)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA query_only = ON")
        return connection

    @property
    def _names(self) -> list[str]:
        """The tables that a database must have to be read."""
        words = (statement.split() for statement in self._tables)
        return [name for create, kind, _, _, _, name, *_ in words if (create, kind) == ("CREATE", "TABLE")]

    def _after_fork(self) -> None:
        """Open new connections if this process was forked.

        SQLite must not use a connection in a forked process. The old ones stay open, because closing them would release
        locks of the other process.
        """
        if os.getpid() != self._pid:
            self._inherited = (self._writer, self._reader)
            self._pid = os.getpid()
            self._lock, self._reading = threading.RLock(), threading.RLock()
            self._writer, self._reader = self._open()
            self._files = self._identities()

    def _identities(self) -> list[tuple[int, int]]:
        """Return the identities of the database's files.

        A connection that writes keeps the log in existence, so the log is one of them.
        """
        path = self.path.resolve()  # SQLite follows a link, too, and has its log beside the link's target
        files = [path] if self._access == "read" else [path, path.with_name(f"{path.name}-wal")]
        return [(found.st_dev, found.st_ino) for found in map(os.stat, files)]

    def is_in_place(self) -> bool:
        """Return whether the database and its log are still in place.

        If they were removed or replaced, SQLite writes to the old files without an error, and nobody would read them.
        """
        self._after_fork()
        try:
            return self._identities() == self._files
        except OSError:
            return False

    def _check_place(self) -> None:
        """Raise `StoreError` if the database is not in place."""
        if not self.is_in_place():
            raise StoreError(
                f"{self.path} is no longer the file that this process has opened (or its log, {self.path.name}-wal, is "
                "not): it was removed, renamed or replaced meanwhile; put it back, and start this command again"
            )

    def append(
        self,
        head: Head,
        after: Head,
        lines: Sequence[Line],
        facts: Sequence[Facts],
        fence: Lease | None,
    ) -> bool:
        """Append lines to a run; see `SqlDatabase`."""
        self._after_fork()
        guard = advance(head, after, fence)
        with self._lock:
            execute = self._writer.execute
            try:
                execute("BEGIN IMMEDIATE")
                try:
                    done = execute(guard.sql, guard.values).rowcount == 1
                    if done:
                        for line in lines:
                            execute(_ADD, (line.id, line.end, line.raw))
                        for fact in facts:
                            execute(fact.sql, fact.values)
                    execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
            except sqlite3.Error as error:
                raise self._failed("written", error) from error
        return done

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def sync_commits(self) -> None:
        """Wait for the disk at each commit from now on."""
        with self._lock:
            self._writer.execute("PRAGMA synchronous=FULL")

    def write(self, work: Callable[[SqliteSession], R]) -> R:
        """Run `work` in a transaction that may write; see `SqlDatabase`.

        It starts with `BEGIN IMMEDIATE`, because a later upgrade to writing could fail at once.
        """
        self._after_fork()
        with self._lock:
            self._check_place()
            connection = self._writer
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    refuse_newer(connection, self.path)
                    result = work(SqliteSession(connection))
                    connection.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
            except sqlite3.Error as error:
                raise self._failed("written", error) from error
        return result

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query."""
        self._after_fork()
        with self._reading:
            self._check_place()
            try:
                return self._reader.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise self._failed("read", error) from error

    def close(self) -> None:
        """Close both connections."""
        with self._lock, self._reading:
            self._reader.close()
            self._writer.close()

    def __del__(self) -> None:
        """Close the connections of a store that nobody closed, unless forked."""
        if hasattr(self, "_writer") and self._pid == os.getpid():
            self.close()


def refuse_network(folder: Path) -> None:
    """Raise `StoreError` if a folder is on a network file system."""
    kind = file_system(folder)
    if kind in _NETWORK:
        raise StoreError(
            f"{folder} is on a network file system ({kind}), where SQLite loses data: use a local disk, or PostgreSQL"
        )


def file_system(folder: Path, mounts: str | None = None) -> str | None:
    """Return the kind of a folder's file system, or None.

    `mounts` is the text of `/proc/self/mounts`.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
        except OSError:
            return None
    place, best, kind = folder.resolve(), -1, None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        root = Path(fields[1].replace("\\040", " "))
        if (place == root or root in place.parents) and len(root.parts) >= best:  # a later mount hides an earlier one
            best, kind = len(root.parts), fields[2]
    return kind
