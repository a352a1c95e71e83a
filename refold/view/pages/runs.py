"""The list of runs: filtered, sorted, folded into families, added up."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ...traces.index.folder import Folder
from ...traces.index.run_row import RunFacts
from .nodes import Json
from .problems import wrong

_FACETS = 50
_MOST = 500
_SOON = 4 << 20
"""Up to this size, in bytes, a trace is counted within the answer: it takes some ten milliseconds."""
_SORTS: dict[str, Any] = {
    "started": lambda row: row.started,
    "changed": lambda row: row.changed,
    "seconds": lambda row: row.seconds,
    "steps": lambda row: row.steps,
    "tokens": lambda row: row.tokens_in + row.tokens_out,
    "cost": lambda row: row.cost,
    "status": lambda row: row.status,
    "task": lambda row: row.task.casefold(),
    "errors": lambda row: row.errors,
}
_RANGES: dict[str, tuple[str, int]] = {
    "since": ("started", 1),
    "until": ("started", -1),
    "min_steps": ("steps", 1),
    "max_steps": ("steps", -1),
    "min_tokens": ("tokens", 1),
    "max_tokens": ("tokens", -1),
    "min_cost": ("cost", 1),
    "max_cost": ("cost", -1),
}


class Families:
    """Which run is below which, in a folder as it is now."""

    def __init__(self, folder: Folder) -> None:
        self.change = folder.changes
        self.rows = dict(folder.rows)
        self.above: dict[str, str] = {}
        self.below: dict[str, list[str]] = {}
        for name, row in self.rows.items():
            parent = folder.named(row.parent[1]) if row.parent is not None else None
            if parent is not None and parent != name and parent in self.rows:
                self.above[name] = parent
        self.roots: dict[str, str] = {}
        for name in self.rows:
            self._find_root(name)
        for name, parent in self.above.items():
            self.below.setdefault(parent, []).append(name)

    def _find_root(self, name: str) -> None:
        """Note the root of a run and of all above it; a run that comes from itself, as a stranger may say, is one."""
        way: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in self.roots:
            if at in way:
                del self.above[at]
                break
            way[at] = None
            at = self.above.get(at)
        root = next(reversed(way), name) if at is None else self.roots.get(at, at)
        self.roots.update(dict.fromkeys(way, root))

    def root(self, name: str) -> str:
        """Return the run at the top of a run's family."""
        return self.roots[name]

    def descendants(self, name: str) -> list[str]:
        """Return all runs below a run."""
        found: list[str] = []
        near = list(self.below.get(name, ()))
        while near:
            one = near.pop()
            found.append(one)
            near.extend(self.below.get(one, ()))
        return found

    def run_row(self, name: str) -> Json:
        """Return a run as one row of the list."""
        row = self.rows[name]
        parent: Json | None = None
        if row.parent is not None:
            kind, run, step, candidate = row.parent
            above = self.above.get(name)
            parent = {"kind": kind, "run": above or run, "step": step, "here": above is not None}
            if candidate is not None:
                parent["candidate"] = candidate
        return {
            "id": name,
            "file": row.file,
            "task": row.task,
            "objective": row.objective,
            "module": row.module,
            "agent": row.agent,
            "status": row.status,
            "reason": row.reason,
            "problem": row.problem,
            "result": row.result,
            "started": row.started,
            "changed": row.changed,
            "seconds": row.seconds,
            "steps": row.steps,
            "usage": {"tokens_in": row.tokens_in, "tokens_out": row.tokens_out, "cost": row.cost},
            "errors": row.errors,
            "waiting": row.waiting,
            "tags": list(row.tags),
            "parent": parent,
            "children": len(self.below.get(name, ())),
            "descendants": len(self.descendants(name)),
            "shape": row.shape,
            "bytes": row.bytes,
        }

    def totals(self, names: Iterable[str]) -> Json:
        """Return what runs have used together."""
        rows = [self.rows[name] for name in dict.fromkeys(names) if name in self.rows]
        return {
            "runs": len(rows),
            "steps": sum(row.steps for row in rows),
            "seconds": sum(row.seconds or 0.0 for row in rows),
            "usage": {
                "tokens_in": sum(row.tokens_in for row in rows),
                "tokens_out": sum(row.tokens_out for row in rows),
                "cost": sum(row.cost or 0.0 for row in rows),
            },
            "errors": sum(row.errors for row in rows),
            "unknown_cost": sum(row.cost is None for row in rows),
        }


_families: WeakKeyDictionary[Folder, Families] = WeakKeyDictionary()


def families_of(folder: Folder) -> Families:
    """Return the families of a folder as it is now; made anew when the folder has changed."""
    found = _families.get(folder)
    if found is None or found.change != folder.changes:
        found = _families[folder] = Families(folder)
    return found


def runs(folder: Folder, query: Mapping[str, str]) -> Json:
    """Return a page of the list."""
    families = families_of(folder)
    fits = _filter(query)
    under = query.get("under")
    flat = query.get("flat") in ("true", "1")
    if under is not None and under not in families.rows:
        raise wrong(f"there is no run {under!r} here")
    matching = [name for name, row in families.rows.items() if fits(row, name)]
    if flat:
        within = set(families.descendants(under)) if under is not None else None
        names = [name for name in matching if within is None or name in within]
        counted = names
    else:
        names = _folded(families, matching, under)
        counted = [*names, *(below for name in names for below in families.descendants(name))]
    names = _sorted(families, names, query)
    offset, limit = _number(query, "offset", 0), min(_number(query, "limit", 100), _MOST)
    page = names[int(offset) : int(offset + limit)]
    folder.complete(page, 0.1, _SOON)  # what is looked at is counted first; larger files in the background
    return {
        "rows": [families.run_row(name) for name in page],
        "total": len(names),
        "totals": families.totals(counted),
        "facets": _facets(families.rows.values()),
        "folder": str(folder.root),
        "indexing": folder.unread or None,
    }


def totals(folder: Folder, ids: Iterable[str]) -> Json:
    """Return the totals of some runs."""
    return families_of(folder).totals(ids)


def _folded(families: Families, matching: Iterable[str], under: str | None) -> list[str]:
    """Return the rows that stand for the matching runs: their roots, or the children of `under` above them."""
    shown: dict[str, None] = {}
    seen: set[str] = set()
    for name in matching:
        at: str | None = name
        while at is not None and at not in seen:
            seen.add(at)
            above = families.above.get(at)
            if above == under:
                shown[at] = None
            at = above
    return list(shown)


def _filter(query: Mapping[str, str]) -> Any:
    words = query.get("q", "").casefold().split()
    sets = {
        name: frozenset(query[name].split(","))
        for name in ("status", "reason", "module", "task", "tag")
        if name in query
    }
    ranges = [
        (field, sign, _number(query, name, 0)) for name, (field, sign) in _RANGES.items() if query.get(name, "") != ""
    ]

    def fits(row: RunFacts, name: str) -> bool:
        if "status" in sets and row.status not in sets["status"]:
            return False
        if "reason" in sets and (row.reason or "") not in sets["reason"]:
            return False
        if "module" in sets and row.module not in sets["module"]:
            return False
        if "task" in sets and row.task not in sets["task"]:
            return False
        if "tag" in sets and not sets["tag"].intersection(row.tags):
            return False
        for field, sign, bound in ranges:
            value = row.tokens_in + row.tokens_out if field == "tokens" else getattr(row, field)
            if value is None or (value - bound) * sign < 0:
                return False
        if words:
            text = "\n".join((row.objective, row.task, name, row.module, *row.tags)).casefold()
            return all(word in text for word in words)
        return True

    return fits


def _sorted(families: Families, names: list[str], query: Mapping[str, str]) -> list[str]:
    by = query.get("sort") or "started"
    if by not in _SORTS:
        raise wrong(f"the list can't be sorted by {by!r}", f"Sort by one of {', '.join(_SORTS)}.")
    order = query.get("order") or ("asc" if by in ("task", "status") else "desc")
    if order not in ("asc", "desc"):
        raise wrong(f"order is asc or desc, not {order!r}")
    key = _SORTS[by]
    rows = families.rows
    known = sorted((name for name in names if key(rows[name]) is not None), key=lambda name: (key(rows[name]), name))
    if order == "desc":
        known.reverse()
    return known + sorted(name for name in names if key(rows[name]) is None)


def _facets(rows: Iterable[RunFacts]) -> Json:
    found: dict[str, Counter[str]] = {name: Counter() for name in ("status", "reason", "module", "task", "tag")}
    for row in rows:
        found["status"][row.status] += 1
        if row.reason:
            found["reason"][row.reason] += 1
        found["module"][row.module] += 1
        found["task"][row.task] += 1
        found["tag"].update(set(row.tags))
    return {
        name: [{"value": value, "count": count} for value, count in counter.most_common(_FACETS) if value]
        for name, counter in found.items()
    }


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    text = query.get(name)
    if text is None or text == "":
        return default
    try:
        value = float(text)
    except ValueError:
        raise wrong(f"{name} is a number, not {text!r}") from None
    if value != value or (name in ("offset", "limit") and not 0 <= value < 2**31):
        raise wrong(f"{name} can't be {text}")
    return value
