"""Which step wrote each value of a state.

A document's writers are a tree of JSON. A leaf is the number of the step that wrote the whole value. A node is `[last,
whole, members]`: the last step that wrote into the value, the step that wrote the value as a whole, and the writers of
its members. `members` is a dict of the members written later than the whole, or a list with an entry for each item. So
the tree grows only with values that were written in parts.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..json_patch.apply import Operation, look, run_operation, split_pointer

Writers: TypeAlias = Any
"""`int`, or `[int, int, dict[str, Writers] | list[Writers]]`."""
INITIAL = -1
"""The writer of the first state, which no step wrote."""


def last_writer(writers: Writers) -> int:
    """Return the last step that wrote a value or its parts."""
    found: int = writers if type(writers) is int else writers[0]
    return found


def writers_of_member(writers: Writers, key: str | int) -> Writers:
    """Return the writers of a member or an item."""
    if type(writers) is int:
        return writers
    _, whole, members = writers
    if isinstance(members, dict):
        return members.get(str(key), whole)
    index = int(key)
    return members[index] if index < len(members) else whole


def writers_at(writers: Writers, tokens: Sequence[str]) -> Writers:
    """Return the writers of the value at a path."""
    for token in tokens:
        writers = writers_of_member(writers, token)
    return writers


def apply_written(doc: Any, writers: Writers, ops: Sequence[Operation], step: int) -> tuple[Any, Writers]:
    """Apply a patch to a document and its writers, in place.

    Returns both. `step` is the step of the patch. Values of the patch become parts of the document. Raises `PatchError`
    as `apply_patch` does.
    """
    for op in ops:
        path = split_pointer(op["path"])
        if not path:
            doc, writers = run_operation(doc, op, None, False), step
            continue
        parent, last, kind, length = look(doc, path[:-1]), path[-1], op["op"], None
        if type(parent) is dict and (kind == "add" or (kind == "replace" and last in parent)):
            parent[last] = op["value"]
        else:
            length = len(parent) if isinstance(parent, list) else None
            doc = run_operation(doc, op, None, False)
        writers = _write(writers, doc, path, kind, length, step)
    return doc, writers


def _write(writers: Writers, doc: Any, path: list[str], kind: str, length: int | None, step: int) -> Writers:
    """Record a change at `path`.

    `length` is the length of the changed list before the change.
    """
    root = _opened(writers, doc, length if len(path) == 1 else None)
    node, value = root, doc
    for depth, token in enumerate(path[:-1]):
        node[0] = step
        value = look(value, (token,))
        members = node[2]
        key: Any = token if isinstance(members, dict) else int(token)
        below = members.get(token, node[1]) if isinstance(members, dict) else members[key]
        members[key] = node = _opened(below, value, length if depth == len(path) - 2 else None)
    node[0] = step
    last, members = path[-1], node[2]
    if isinstance(members, dict):
        if kind == "remove":
            members.pop(last, None)
        else:
            members[last] = step
    elif kind == "add":
        members.insert(len(members) if last == "-" else int(last), step)
    elif kind == "remove":
        del members[int(last)]
    else:
        members[int(last)] = step
    return root


def _opened(writers: Writers, value: Any, length: int | None) -> Writers:
    """Return a container's writers as a node.

    If items of a list moved, `length` is its number of items before.
    """
    if type(writers) is not int:
        return writers
    if isinstance(value, list):
        return [writers, writers, [writers] * (len(value) if length is None else length)]
    return [writers, writers, {}]
