"""A check that an SQLite file is a store's.

The check comes before any write: the file may belong to another program, or a stranger may have made its schema to run
code. So it is opened read-only first, and each of the store's tables must be a plain one: a view, a virtual table or a
computed column could do more than hold values.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from ...errors import StoreError

APPLICATION = 0x72667374
"""The `application_id` of a store's file: "rfst"."""
VERSION = 1
"""The `user_version` of a store's file; it changes with the meaning of a table."""
MARKS = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
_OURS = frozenset(("tasks", "documents", "heads", "records", "blobs", "runs", "totals"))
_RUNS = "CREATE TABLE heads "
"""The beginning of the statement that makes the table of runs, without which a database holds the sets of a folder."""
_SHOWN = 3
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, 256 * 2**20),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 10),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
)
"""Limits of every connection, far above the needs of a store: a value may have 256 MiB; SQLite's default is 1 GB."""


def restrict(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Limit what the schema and values of a file can do."""
    for name, value in _LIMITS:
        connection.setlimit(name, value)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def connect_to_read(path: Path, timeout: float) -> sqlite3.Connection:
    """Open a database for reading only.

    Raises `StoreError` if records wait beside the file that only a process with a right to write can read.
    """
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    connection = _connect(address, timeout)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.OperationalError:  # in a read-only folder, SQLite cannot create the file that readers share
        connection.close()
        _refuse_log(path)  # the connection below would not look at it
        return _connect(f"{address}&immutable=1", timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_log(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"{path} has records in {log.name} that cannot be read in a folder without the right to write: copy both "
            "files to a folder of yours, and name the copy"
        )


def is_plain(connection: sqlite3.Connection, name: str, kind: str, sql: str) -> bool:
    """Return whether a table only holds values.

    Such a table is no view, is not virtual, and computes no column.
    """
    columns = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
    return kind == "table" and "VIRTUAL" not in sql.upper().partition("(")[0] and not any(each[-1] for each in columns)


def _normal(statement: str) -> str:
    """Return a statement in SQLite's form, without differences in white space."""
    return " ".join(statement.replace("IF NOT EXISTS ", "").split())


def refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreError` if the tables are a newer refold's.

    Inside a transaction that writes, no newer refold can change them before it ends.
    """
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    if version > VERSION:
        raise StoreError(
            f"{path} was made by a newer refold: its tables have version {version}, this refold's have {VERSION}; "
            "upgrade refold"
        )


def _connect(address: str, timeout: float) -> sqlite3.Connection:
    return restrict(sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False))


def check_owner(path: Path, statements: Sequence[str], needed: Sequence[str] = ()) -> None:
    """Raise `StoreError` if a database is not a store's.

    Missing `needed` tables raise it, too. A trigger on one of the store's tables must be one of `statements`: any other
    could run for ever at each append. If `statements` make the tables of runs, the table of sets beside a folder of
    traces is refused: with more tables in it, the folder could not be used any more. A file without any table counts as
    a new store, unless tables are needed.
    """
    if not path.exists():
        return
    if not path.is_file():  # to open a pipe would wait for its other end
        raise StoreError(f"{path} cannot be opened as an SQLite database: it is not a regular file")
    if path.stat().st_size == 0 and not needed:
        return
    with closing(connect_to_read(path, 5.0)) as connection:
        [(application,)] = connection.execute("PRAGMA application_id").fetchall()
        found = {
            str(name): (kind, str(sql))
            for name, kind, sql in connection.execute(
                "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            )
        }
        # Files made before the mark existed have the tables of tasks, which no release has changed.
        is_ours = application == APPLICATION or (application == 0 and {"tasks", "documents"} <= found.keys())
        if not is_ours and (found or application != 0):
            names = ", ".join(sorted(found)[:_SHOWN]) or "none"
            raise StoreError(
                f"{path} is the database of another program (application id {application:#x}, tables: {names}) and "
                "stays unchanged; name another file"
            )
        if is_ours:
            refuse_newer(connection, path)
        for name in _OURS & found.keys():
            if not is_plain(connection, name, *found[name]):
                raise StoreError(f"{path} is not a store: {name} is not a plain table; name another file")
        triggers = connection.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        ours = {_normal(each) for each in statements}
        for name, table, sql in triggers:
            if table in _OURS and _normal(str(sql)) not in ours:
                raise StoreError(f"{path} is not a store: it has a trigger {name} of its own; name another file")
        if "tasks" in found and "heads" not in found and any(_RUNS in each for each in ours):
            raise StoreError(f"{path} holds the sets of a folder, and no runs: name the folder, {path.parent}")
        if missing := [name for name in needed if name not in found]:
            raise StoreError(f"{path} holds no runs: it has no table {missing[0]}; name the file of a store")
