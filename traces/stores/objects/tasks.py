"""The table of tasks in object storage, an object for each task."""

from collections.abc import Iterable, Iterator, Sequence
from secrets import token_hex
from typing import Any
from urllib.parse import quote, unquote

import orjson

from ....errors import TraceTakenError
from ..task_table import QUEUED, RUNNING, Figures, Lease, NewTask, TaskCount, TaskRow
from .bucket import Bucket, Found

_FIGURES = ("score", "cost", "tokens", "seconds", "error", "result")
Doc = dict[str, Any]


def task_name(set_id: str, key: str) -> str:
    """Return the name of a task's object."""
    return f"sets/{quote(set_id, safe='')}/tasks/{quote(key, safe='')}"


def check_lease(bucket: Bucket, lease: Lease) -> tuple[Doc, Found]:
    """Return the object of a lease's task, or raise `TraceTakenError`."""
    found = bucket.get(task_name(lease.set_id, lease.key))
    doc: Doc = found.doc() if found is not None else {}
    if found is None or doc["epoch"] != lease.epoch or doc["status"] != RUNNING:
        raise TraceTakenError(f"task {lease.key} of set {lease.set_id}", doc.get("owner"))
    return doc, found


class ObjectTasks:
    """The tasks of one set.

    A claim lists all tasks, and reads those that have changed since the last list.
    """

    def __init__(self, bucket: Bucket, set_id: str) -> None:
        self._bucket = bucket
        self._set_id = set_id
        self._known: dict[str, tuple[str, float, Doc]] = {}

    @property
    def set_id(self) -> str:
        """The id of the set."""
        return self._set_id

    def _all(self) -> list[tuple[str, float, Doc]]:
        """Return tag, time and document of each task, in their order."""
        prefix = task_name(self._set_id, "")
        entries = self._bucket.entries(prefix)
        changed = [entry.name for entry in entries if self._known.get(entry.name, ("",))[0] != entry.tag]
        for name, found in zip(changed, self._bucket.get_all(changed), strict=True):
            if found is not None:
                self._known[name] = (found.tag, found.at, found.doc())
        there = {entry.name for entry in entries}
        self._known = {name: known for name, known in self._known.items() if name in there}
        return sorted(self._known.values(), key=lambda known: (known[2]["place"], known[2]["key"]))

    def _replace(self, doc: Doc, tag: str) -> bool:
        doc["changes"] = token_hex(8)  # makes each version unique: otherwise a lost race could look won
        return self._bucket.replace(task_name(self._set_id, doc["key"]), orjson.dumps(doc), tag)

    def add(self, tasks: Iterable[NewTask]) -> int:
        """Add tasks; see `TaskTable`."""
        last, added = self._last(), 0
        for number, task in enumerate(tasks, 1):
            doc = {**_new(task, last + number), "epoch": 0, "status": QUEUED, "attempts": 0, "run_id": None}
            added += self._bucket.create(task_name(self._set_id, task.key), orjson.dumps(doc))
        return added

    def put(self, rows: Iterable[TaskRow]) -> int:
        """Store rows of another table; see `TaskTable`."""
        last, stored = self._last(), 0
        for number, row in enumerate(rows, 1):
            doc = {**_new(row, last + number), **_shown(row.figures)}
            doc |= {"epoch": row.epoch, "status": row.status, "attempts": row.attempts, "run_id": row.run_id}
            name = task_name(self._set_id, row.key)
            if self._bucket.create(name, orjson.dumps(doc)):
                stored += 1
            elif (found := self._bucket.get(name)) is not None:
                there = found.doc()
                now = self._bucket.now() if there["status"] == RUNNING else 0.0
                if there["epoch"] <= row.epoch and not self._row(found.at, there, now).held:
                    kept: Doc = {name: there[name] for name in ("place", "changes") if name in there}
                    stored += self._replace({**doc, **kept}, found.tag)
            if row.run_id is not None and (of_run := self._bucket.get(f"rows/{row.run_id}")) is not None:
                known = of_run.doc()
                if not known["set_id"]:
                    self._bucket.put(f"rows/{row.run_id}", orjson.dumps({**known, "set_id": self._set_id}))
        return stored

    def _last(self) -> int:
        return max((doc["place"] for _, _, doc in self._all()), default=0)

    def claim(self, owner: str, count: int, seconds: float) -> list[Lease]:
        """Claim tasks; see `TaskTable`."""
        claimed: list[Lease] = []
        tasks = self._all()
        now = self._bucket.now() if any(doc["status"] == RUNNING for _, _, doc in tasks) else 0.0
        for tag, at, doc in tasks:
            if len(claimed) == count:
                break
            if doc["status"] == QUEUED or (doc["status"] == RUNNING and at + doc["lease"] < now):
                taken = {
                    **doc,
                    "status": RUNNING,
                    "owner": owner,
                    "epoch": doc["epoch"] + 1,
                    "lease": seconds,
                    "attempts": doc["attempts"] + 1,
                }
                if self._replace(taken, tag):
                    claimed.append(
                        Lease(
                            self._set_id,
                            doc["key"],
                            taken["epoch"],
                            owner,
                            doc["run_id"],
                            taken["attempts"],
                            doc["doc"],
                            doc["group"],
                            doc["model"],
                        )
                    )
        return claimed

    def extend(self, owner: str, seconds: float) -> list[str]:
        """Extend the leases of an owner; see `TaskTable`."""
        return sorted(doc["key"] for tag, _, doc in self._all() if self._extended(doc, tag, owner, seconds))

    def _extended(self, doc: Doc, tag: str, owner: str, seconds: float) -> bool:
        """Extend one lease, unless its owner has lost it.

        The owner itself may change the task meanwhile, for example to note its run.
        """
        while doc["owner"] == owner and doc["status"] == RUNNING:
            if self._replace({**doc, "lease": seconds}, tag):
                return True
            found = self._bucket.get(task_name(self._set_id, doc["key"]))
            if found is None:
                return False
            doc, tag = found.doc(), found.tag
        return False

    def note_run(self, lease: Lease, run_id: str) -> None:
        """Note a new run as that of the lease's task; raises `TraceTakenError`."""
        self._change(lease, {"run_id": run_id})

    def finish(self, lease: Lease, status: str, figures: Figures | None = None) -> None:
        """End a claimed task; see `TaskTable`."""
        if status in (QUEUED, RUNNING):
            raise ValueError(f"a task cannot end with the status {status!r}; to queue it again, use release()")
        self._give_up(lease, status, figures or Figures())

    def release(self, lease: Lease, figures: Figures | None = None) -> None:
        """Put a claimed task back; see `TaskTable`."""
        self._give_up(lease, QUEUED, figures or Figures())

    def _give_up(self, lease: Lease, status: str, figures: Figures) -> None:
        found = self._bucket.get(task_name(self._set_id, lease.key))
        if found is not None:
            there = found.doc()
            if there["epoch"] == lease.epoch and there["status"] == status:  # done before the connection was lost
                return
        self._change(lease, {**_shown(figures), "status": status, "owner": None, "lease": 0.0})

    def _change(self, lease: Lease, changes: Doc) -> None:
        while True:
            doc, found = check_lease(self._bucket, lease)
            if self._replace({**doc, **changes}, found.tag):
                return

    def requeue(self, statuses: Sequence[str], *, keys: Sequence[str] | None = None, fresh: bool = False) -> int:
        """Queue ended tasks again; see `TaskTable`."""
        if RUNNING in statuses:
            raise ValueError("a running task cannot be queued; it is claimed again when its lease has run out")
        queued = {"status": QUEUED, "attempts": 0, "error": None, **({"run_id": None} if fresh else {})}
        return sum(
            self._replace({**doc, **queued}, tag)
            for tag, _, doc in self._all()
            if doc["status"] in statuses and (keys is None or doc["key"] in keys)
        )

    def row(self, key: str) -> TaskRow | None:
        """Return one row; see `TaskTable`."""
        found = self._bucket.get(task_name(self._set_id, key))
        if found is None:
            return None
        doc = found.doc()
        return self._row(found.at, doc, self._bucket.now() if doc["status"] == RUNNING else 0.0)

    def rows(self, *, status: str | None = None, after: int | None = None, limit: int = 1000) -> list[TaskRow]:
        """Return a page of rows; see `TaskTable`."""
        found = [
            (at, doc)
            for _, at, doc in self._all()
            if doc["place"] > (after or 0) and (status is None or doc["status"] == status)
        ][:limit]
        now = self._bucket.now() if any(doc["status"] == RUNNING for _, doc in found) else 0.0
        return [self._row(at, doc, now) for at, doc in found]

    def counts(self) -> list[TaskCount]:
        """Return sums by status; see `TaskTable`."""
        return list(self._counts())

    def _counts(self) -> Iterator[TaskCount]:
        docs = [doc for _, _, doc in self._all()]
        for status in sorted({doc["status"] for doc in docs}):
            mine = [doc for doc in docs if doc["status"] == status]
            scores = [doc["score"] for doc in mine if doc.get("score") is not None]
            costs = [doc["cost"] for doc in mine if doc.get("cost") is not None]
            unpriced = 0 if status in (QUEUED, RUNNING) else len(mine) - len(costs)
            tokens = sum(doc.get("tokens") or 0 for doc in mine)
            yield TaskCount(status, len(mine), len(scores), sum(scores), sum(costs), unpriced, tokens)

    def documents(self) -> list[str]:
        """Return the names of the documents."""
        prefix = self._document_name("")
        return sorted(unquote(entry.name.removeprefix(prefix)) for entry in self._bucket.entries(prefix))

    def document(self, name: str) -> tuple[int, Any]:
        """Return a document; see `TaskTable`."""
        found = self._bucket.get(self._document_name(name))
        if found is None:
            return 0, None
        doc = found.doc()
        return doc["version"], doc["value"]

    def put_document(self, name: str, value: Any, version: int) -> bool:
        """Store a document; see `TaskTable`."""
        place = self._document_name(name)
        content = orjson.dumps({"version": version + 1, "value": value, "change": token_hex(8)})  # as in `_replace`
        if version == 0:
            return self._bucket.create(place, content)
        found = self._bucket.get(place)
        return (
            found is not None and found.doc()["version"] == version and self._bucket.replace(place, content, found.tag)
        )

    def _document_name(self, name: str) -> str:
        return f"sets/{quote(self._set_id, safe='')}/documents/{quote(name, safe='')}"

    def _row(self, at: float, doc: Doc, now: float) -> TaskRow:
        figures = {name: doc[name] for name in _FIGURES if doc.get(name) is not None}
        return TaskRow(
            self._set_id,
            doc["key"],
            doc["place"],
            doc["status"],
            doc["epoch"],
            doc["owner"],
            doc["status"] == RUNNING and at + doc["lease"] >= now,
            doc["attempts"],
            doc["run_id"],
            doc["group"],
            doc["model"],
            Figures(**figures),
            doc["doc"],
            at,
        )


def _new(task: NewTask | TaskRow, place: int) -> Doc:
    """Return the members that neither claims nor leases change."""
    given = {"key": task.key, "place": place, "group": task.group, "model": task.model, "doc": dict(task.doc)}
    return {**given, "owner": None, "lease": 0.0}


def _shown(figures: Figures) -> Doc:
    shown = {name: getattr(figures, name) for name in _FIGURES}
    return shown if figures.result is None else {**shown, "result": dict(figures.result)}


def set_ids(bucket: Bucket) -> list[str]:
    """Return the ids of all sets."""
    return sorted({unquote(entry.name.split("/")[1]) for entry in bucket.entries("sets/") if "/tasks/" in entry.name})
