"""The tables of sets beside a folder, read as untrusted data.

A store opens its database for writing. A reader must not: the folder may be read-only, the file may be no database, and
its schema may have been made to run code. So the file is opened read-only and must be a regular file with a plain
table. A value of a type that its column does not allow is ignored.
"""

import math
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ...errors import StoreError
from ...file.safe_open import open_file
from ..sqlite.ownership import connect_to_read, is_plain
from ..task_table import QUEUED, RUNNING
from .store import TASKS

_SHOWN = 2000
"""How many characters of a text are read: a table has answers and errors of any length."""
_DOCUMENT = 64 * 1024
"""How many characters a task's result may have to be shown."""
_WORK = 50_000_000
"""SQLite instructions for one query: some seconds. A table of 1,000,000 tasks takes about half of them."""
_COUNTS = (
    "SELECT set_id, status, COUNT(*), COUNT(score), TOTAL(score), TOTAL(cost),"
    f" SUM(cost IS NULL AND status NOT IN ('{QUEUED}', '{RUNNING}')), TOTAL(tokens),"
    " MAX(changed) FROM tasks GROUP BY set_id, status"
)
_ROWS = (
    "SELECT place, key, status, attempts, run_id, grp, model, score, cost, tokens, seconds,"
    f" substr(error, 1, {_SHOWN}), CASE WHEN length(result) <= {_DOCUMENT} THEN result END, changed, owner,"
    " lease_until > ((julianday('now') - 2440587.5) * 86400.0) FROM tasks"
)


@dataclass(slots=True)
class SetCounts:
    """The number of a set's tasks with each status, and their sums."""

    set_id: str
    counts: dict[str, int] = field(default_factory=dict)
    scored: int = 0
    score: float = 0.0
    cost: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    changed: float | None = None

    @property
    def tasks(self) -> int:
        """The number of all tasks."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class SetTask:
    """A task's row in the table of a set; None means unknown."""

    place: int
    key: str
    status: str
    attempts: int
    run_id: str | None
    group: str
    model: str
    score: float | None
    cost: float | None
    tokens: int
    seconds: float | None
    error: str | None
    result: str | None
    steps: int | None
    changed: float | None
    held: bool


class SetsFile:
    """Reads a folder's tables of sets; each query opens the file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / TASKS

    def sets(self) -> list[SetCounts]:
        """Return the counts of each set, sorted by name.

        The list is empty if the folder has no sets. Raises `StoreError`.
        """
        found: dict[str, SetCounts] = {}
        for name, status, tasks, scored, score, cost, unpriced, tokens, changed in self._rows(_COUNTS):
            one = found.setdefault(_text(name), SetCounts(_text(name)))
            one.counts[_text(status)] = one.counts.get(_text(status), 0) + _whole(tasks)
            one.scored += _whole(scored)
            one.score += _number(score) or 0.0
            one.cost += _number(cost) or 0.0
            one.unpriced += _whole(unpriced)
            one.tokens += _whole(tokens)
            one.changed = max(filter(None, (one.changed, _number(changed))), default=None)
        return [found[name] for name in sorted(found)]

    def tasks(
        self, set_id: str, *, status: Sequence[str] = (), after: int | None = None, limit: int = 200
    ) -> list[SetTask]:
        """Return a page of a set's tasks, in their order.

        `after` is the place of the previous page's last task. Raises `StoreError`.
        """
        where = ["set_id = ?", *([f"status IN ({', '.join('?' * len(status))})"] if status else [])]
        values: list[Any] = [set_id, *status]
        if after is not None:
            where.append("place > ?")
            values.append(after)
        sql = f"{_ROWS} WHERE {' AND '.join(where)} ORDER BY place LIMIT ?"
        return [set_task(row) for row in self._rows(sql, [*values, limit])]

    def document(self, set_id: str, name: str) -> dict[str, Any]:
        """Return a set's document, or an empty one; raises `StoreError`."""
        sql = f"SELECT value FROM documents WHERE set_id = ? AND name = ? AND length(value) <= {16 * _DOCUMENT}"
        found = self._rows(sql, [set_id, name], "documents")
        return _document(found[0][0]) if found else {}

    def _rows(self, sql: str, values: Sequence[Any] = (), table: str = "tasks") -> list[tuple[Any, ...]]:
        if not self.path.is_symlink() and not self.path.exists():
            return []
        try:
            with self._opened(table) as connection:
                return connection.execute(sql, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"{self.path} cannot be read as the table of sets: {error}") from error

    @contextmanager
    def _opened(self, table: str) -> Iterator[sqlite3.Connection]:
        os.close(open_file(self.path))  # refuses links, folders and pipes
        with closing(connect_to_read(self.path, 1.0)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.set_progress_handler(lambda: 1, _WORK)
            kinds = connection.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", [table]).fetchall()
            if len(kinds) != 1 or not is_plain(connection, table, kinds[0][0], str(kinds[0][1])):
                raise StoreError(f"{self.path} has no table of {table}: it is not the database of a set")
            yield connection


def set_task(row: Sequence[Any]) -> SetTask:
    """Return the task of a row's columns, whatever types they have."""
    (place, key, status, attempts, run_id, group, model, score, cost, tokens, seconds, error, result) = row[:13]
    document = _document(result)
    answer = document.get("final_result")
    waiting = document.get("waiting")
    if not isinstance(answer, str) and isinstance(waiting, list):
        answer = "; ".join(str(each) for each in waiting[:10])
    steps = document.get("steps")
    return SetTask(
        place=_whole(place),
        key=_text(key),
        status=_text(status),
        attempts=_whole(attempts),
        run_id=_text(run_id) or None,
        group=_text(group),
        model=_text(model),
        score=_number(score),
        cost=_number(cost),
        tokens=_whole(tokens),
        seconds=_number(seconds),
        error=_text(error) or None,
        result=answer[:_SHOWN] if isinstance(answer, str) and answer else None,
        steps=steps if type(steps) is int else None,
        changed=_number(row[13]),
        held=bool(row[14]) and row[15] == 1,
    )


def _document(text: Any) -> dict[str, Any]:
    try:
        found = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return value[:_SHOWN] if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
