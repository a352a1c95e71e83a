"""The sets of runs in the folder, and the tasks of one."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ....errors import StoreError
from ....modules.run_sets.shared_budget import NAME as MONEY
from ....modules.run_sets.shared_budget import excess_in
from ....traces.index.folder import Folder
from ....traces.stores import TaskRow, TraceStore
from ....traces.stores.folder.sets_file import SetCounts, SetsFile, SetTask, set_task
from ..nodes import Json
from ..problems import ProblemError
from ..query import Question

_MOST = 500
_STATUSES = 20
"""How many statuses are counted separately: refold writes seven, a stranger any number."""


class StoreSets:
    """Reads the tables of a store's sets; `SetsFile` reads a folder's."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store

    def sets(self) -> list[SetCounts]:
        """Return the counts of each set, by name; raises `StoreError`."""
        with self._read():
            return [self._standing(name) for name in self._store.sets()]

    def _standing(self, name: str) -> SetCounts:
        found = SetCounts(name)
        for each in self._store.tasks(name).counts():
            found.counts[each.status] = each.tasks
            found.scored += each.scored
            found.score += each.score
            found.cost += each.cost
            found.unpriced += each.unpriced
            found.tokens += each.tokens
        return found

    def tasks(
        self, set_id: str, *, status: Sequence[str] = (), after: int | None = None, limit: int = 200
    ) -> list[SetTask]:
        """Return a page of a set's tasks in their order; raises `StoreError`."""
        table = self._store.tasks(set_id)
        with self._read():
            found = [row for each in status or (None,) for row in table.rows(status=each, after=after, limit=limit)]
            return [_shown(row) for row in sorted(found, key=lambda row: row.place)[:limit]]

    def document(self, set_id: str, name: str) -> Any:
        """Return a document of a set, or None; raises `StoreError`."""
        with self._read():
            return self._store.tasks(set_id).document(name)[1]

    @contextmanager
    def _read(self) -> Iterator[None]:
        try:
            yield
        except (TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"{self._store.url} holds a set that refold did not write: {error}") from error


def _shown(row: TaskRow) -> SetTask:
    figures, result = row.figures, row.figures.result
    numbers = (figures.score, figures.cost, figures.tokens, figures.seconds, figures.error)
    text = None if result is None else json.dumps(dict(result))
    columns = (row.place, row.key, row.status, row.attempts, row.run_id, row.group, row.model, *numbers, text)
    return set_task((*columns, row.changed, row.owner, row.held))


def sets(folder: Folder) -> Json:
    """Return the counts of the sets, also of those in subfolders."""
    return {"sets": [_standing(name, counts) for name, _, counts in _all(folder)]}


def set_page(folder: Folder, query: Question, after: int | None, limit: int) -> Json:
    """Return one set with a page of its tasks.

    Raises `ProblemError` if the set is not in the folder.
    """
    name = query.get("id", "")
    found = next((each for each in _all(folder) if each[0] == name), None)
    if found is None:
        raise ProblemError(404, "no_set", f"there is no set {name!r} here", "The list of runs names the sets.")
    _, file, counts = found
    statuses = [each for each in query.several("status") if each]
    limit = max(1, min(limit, _MOST))
    rows = file.tasks(counts.set_id, status=statuses, after=after, limit=limit)
    more = rows[-1].place if len(rows) == limit else None
    shown = _standing(name, counts) | {"note": excess_in(file.document(counts.set_id, MONEY))}
    return {"set": shown, "tasks": [_task(folder, each) for each in rows], "next": more}


def _all(folder: Folder) -> Iterator[tuple[str, SetsFile | StoreSets, SetCounts]]:
    """Yield name, table and counts of each set.

    A set in a subfolder is also named by that folder, unless the names are the same.
    """
    own = SetsFile(folder.root) if folder.store is None else StoreSets(folder.store)
    yield from ((each.set_id, own, each) for each in own.sets())
    for place in folder.set_folders():
        file = SetsFile(folder.root / place)
        with suppress(StoreError):  # a file that is not a table of sets must not hide other sets
            for each in file.sets():
                yield (place if each.set_id == place else f"{place}/{each.set_id}"), file, each


def _standing(name: str, found: SetCounts) -> Json:
    return {
        "id": name,
        "tasks": found.tasks,
        "counts": _counts(found.counts),
        "score": found.score / found.scored if found.scored else None,
        "scored": found.scored,
        "cost": found.cost,
        "unpriced": found.unpriced,
        "tokens": found.tokens,
        "changed": found.changed,
    }


def _counts(counts: dict[str, int]) -> dict[str, int]:
    """Return the number of tasks by status, with rare statuses added up."""
    most = Counter(counts).most_common()
    rest = sum(number for _, number in most[_STATUSES:])
    return dict(most[:_STATUSES]) | ({"other": rest} if rest else {})


def _task(folder: Folder, task: SetTask) -> Json:
    return {
        "place": task.place,
        "key": task.key,
        "status": "lost" if task.status == "running" and not task.held else task.status,
        "attempts": task.attempts,
        "run": None if task.run_id is None else folder.named(task.run_id),
        "group": task.group,
        "model": task.model,
        "score": task.score,
        "cost": task.cost,
        "tokens": task.tokens,
        "seconds": task.seconds,
        "steps": task.steps,
        "error": task.error,
        "result": task.result,
        "changed": task.changed,
    }
