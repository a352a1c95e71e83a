"""Applies patches to a copy that shares the unchanged parts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import PatchError
from .apply import Operation, copy_json, join_pointer, look, run_operation, split_pointer

Op = Literal["add", "replace", "remove"]


@dataclass(frozen=True, slots=True)
class Change:
    """One changed value, at `path`.

    `old` is None if `op` is "add", `new` is None if `op` is "remove".
    """

    path: str
    op: Op
    old: Any
    new: Any


def patched(doc: Any, ops: Iterable[Operation], copies: list[Any] | None = None) -> Any:
    """Return the document after a patch; `doc` stays unchanged.

    The result shares the unchanged parts with `doc`, and new values with the patch. Only the containers on the way to a
    change are copied, once each and shallowly; `copies` collects these copies. Raises `PatchError` as `apply_patch`
    does.
    """
    owned: dict[int, Any] = {}
    number = -1
    for number, op in enumerate(ops):
        try:
            doc = _apply(doc, op, owned)
        except PatchError as error:
            raise PatchError(error.reason, number, error.pointer or str(op.get("path"))) from None
    if copies is not None:
        copies.extend(owned.values())
    return doc


def pointers(container: Any) -> int:
    """Return about how many pointers a shallow copy takes.

    A member of an object counts as four pointers.
    """
    return 4 * len(container) if isinstance(container, dict) else len(container)


def changes_of(doc: Any, ops: Iterable[Operation]) -> tuple[Change, ...]:
    """Return the changes of a patch to `doc`, operation by operation.

    Changes have old values, and real indices in place of `-`. A `move` counts as a removal and an addition, a `copy`
    as an addition; a `test` changes nothing. Raises `PatchError`.
    """
    owned: dict[int, Any] = {}
    found: list[Change] = []
    for op in ops:
        kind = op["op"]
        if kind == "move" and op["from"] != op["path"]:
            old = look(doc, split_pointer(op["from"]))
            found.append(Change(op["from"], "remove", old, None))
            doc = _apply(doc, {"op": "remove", "path": op["from"]}, owned)
            op = {"op": "add", "path": op["path"], "value": old}
        elif kind == "copy":
            op = {"op": "add", "path": op["path"], "value": copy_json(look(doc, split_pointer(op["from"])))}
        elif kind == "remove":
            found.append(Change(op["path"], "remove", look(doc, split_pointer(op["path"])), None))
        if op["op"] in ("add", "replace"):
            found.append(_setting(doc, op))
        doc = _apply(doc, op, owned)
    return tuple(found)


def _setting(doc: Any, op: Operation) -> Change:
    path, value = op["path"], op["value"]
    tokens = split_pointer(path)
    if not tokens:
        return Change("", "replace", doc, value)
    parent, last = look(doc, tokens[:-1]), tokens[-1]
    if isinstance(parent, list):
        if op["op"] == "add":
            return Change(join_pointer([*tokens[:-1], len(parent)]) if last == "-" else path, "add", None, value)
        return Change(path, "replace", look(parent, (last,)), value)
    if isinstance(parent, dict) and last not in parent:
        return Change(path, "add", None, value)
    return Change(path, "replace", look(parent, (last,)), value)


def _apply(doc: Any, op: Operation, owned: dict[int, Any]) -> Any:
    for member in ("path", "from") if op.get("op") == "move" else ("path",):
        pointer = op.get(member)
        if isinstance(pointer, str):
            doc = _own(doc, split_pointer(pointer)[:-1], owned)
    return run_operation(doc, op, None, False)


def _own(doc: Any, tokens: list[str], owned: dict[int, Any]) -> Any:
    """Copy the containers on a path once each; return the copied document."""
    root = node = _copied(doc, owned)
    for token in tokens:
        child = look(node, (token,))
        mine = _copied(child, owned)
        if mine is not child:
            node[token if isinstance(node, dict) else int(token)] = mine
        node = mine
    return root


def _copied(node: Any, owned: dict[int, Any]) -> Any:
    if id(node) in owned or not isinstance(node, (dict, list)):
        return node
    mine = node.copy()
    owned[id(mine)] = mine
    return mine
