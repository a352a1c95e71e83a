"""What a step changed in the state, as a tree of the changed values, old beside new."""

from collections.abc import Iterable
from typing import Any

from ...errors import PatchError, TraceCorruptError
from ...traces.index.indexed import IndexedTrace
from ...traces.index.writers import INITIAL, Writers, last_writer, writers_of_member
from ...traces.json_patch.apply import escape, same_json
from ...traces.json_patch.share import patched
from .nodes import Json, Nodes

_MOST = 500
_COUNTER = "current_step"
_ABSENT = object()


def changes(trace: IndexedTrace, k: int) -> Json:
    """Return what step k changed."""
    with trace.lock:
        before, writers = trace.document(k)
        try:
            after = patched(before, trace.patch(k))
        except PatchError as error:
            reason = f"the patch does not fit the state: {error}"
            raise TraceCorruptError(reason, 0, path=trace.path) from None
        return {"k": k, **change_tree(before, after, f"s:{k}:", f"s:{k + 1}:", writers, k)}


def change_tree(
    old: Any, new: Any, old_at: str, new_at: str, writers: Writers = INITIAL, step: int | None = None
) -> Json:
    """Return the changes between two documents; `by` says who wrote the old value, and `step` wrote the new one."""
    making = _Making(old_at, new_at, step)
    tree = making.tree(old, new, "", None, writers, root=True)
    return {"count": making.count, "tree": tree, "more": making.more}


class _Making:
    """Makes one tree, and counts."""

    def __init__(self, old_at: str, new_at: str, step: int | None) -> None:
        self.count = self.more = 0
        self._old_at, self._new_at, self._step = old_at, new_at, step
        self._nodes = Nodes()

    def tree(
        self, old: Any, new: Any, path: str, key: str | int | None, writers: Writers, root: bool = False
    ) -> Json | None:
        """Return what changed at a path; None if nothing did."""
        if old is new:
            return None
        if isinstance(old, dict) and isinstance(new, dict):
            return self._inside(_object_pairs(old, new, root), new, path, key, writers)
        if isinstance(old, list) and isinstance(new, list):
            return self._inside(_list_pairs(old, new), new, path, key, writers)
        if old is not _ABSENT and new is not _ABSENT and same_json(old, new):
            return None
        self.count += 1
        if self.count > _MOST:
            self.more += 1
            return None
        shown = new if new is not _ABSENT else old
        change: Json = {} if key is None else {"key": key}
        kind = "add" if old is _ABSENT else "remove" if new is _ABSENT else "replace"
        change |= {"path": path, "change": kind, "kind": _kind(shown), "size": _size(shown)}
        if old is not _ABSENT:
            change["old"] = self._nodes.node(old, self._old_at + path)
            change["by"] = last_writer(writers)
        if new is not _ABSENT:
            change["new"] = self._nodes.node(new, self._new_at + path, writers=self._step)
        return change

    def _inside(
        self, pairs: Iterable[tuple[str | int, Any, Any]], new: Any, path: str, key: str | int | None, writers: Writers
    ) -> Json | None:
        children: list[Json] = []
        unchanged, found = 0, False
        for name, a, b in pairs:
            if a is b:
                unchanged += 1
                continue
            before = self.count
            child = self.tree(a, b, f"{path}/{escape(str(name))}", name, writers_of_member(writers, name))
            if child is not None:
                found = True
                if unchanged:
                    children.append({"unchanged": unchanged})
                children.append(child)
                unchanged = 0
            elif self.count == before:
                unchanged += 1
            else:
                found = True
        if not found:
            return None
        if unchanged:
            children.append({"unchanged": unchanged})
        change: Json = {} if key is None else {"key": key}
        kind = "object" if isinstance(new, dict) else "array"
        change |= {"path": path, "change": "in", "kind": kind, "size": len(new), "children": children}
        change["by"] = last_writer(writers)
        return change


def _object_pairs(old: dict[str, Any], new: dict[str, Any], root: bool) -> Iterable[tuple[str, Any, Any]]:
    """Yield the members of two objects in the new one's order, those that were removed last."""
    for name, value in new.items():
        if not (root and name == _COUNTER):
            yield name, old.get(name, _ABSENT), value
    for name, value in old.items():
        if name not in new:
            yield name, value, _ABSENT


def _list_pairs(old: list[Any], new: list[Any]) -> Iterable[tuple[int, Any, Any]]:
    """Yield the items of two lists, paired from both ends; what is left in the middle is paired in order."""
    shorter = min(len(old), len(new))
    first = 0
    while first < shorter and old[first] is new[first]:
        first += 1
    last = 0
    while last < shorter - first and _same(old[-1 - last], new[-1 - last]):
        last += 1
    if len(old) == len(new):
        last = 0  # nothing has moved: a pair is a place
    for index in range(first):
        yield index, new[index], new[index]
    removed, added = len(old) - last, len(new) - last
    for index in range(first, max(removed, added)):
        yield index, old[index] if index < removed else _ABSENT, new[index] if index < added else _ABSENT
    for index in range(added, len(new)):
        yield index, new[index], new[index]


def _same(left: Any, right: Any) -> bool:
    return left is right or (not isinstance(left, (dict, list)) and same_json(left, right))


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "boolean" if isinstance(value, bool) else "number"


def _size(value: Any) -> int:
    return len(value) if isinstance(value, (dict, list, str)) else 0
