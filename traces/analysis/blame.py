"""Which steps changed the values at a path of the state."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import PatchError, TraceCorruptError
from ..file.lines import Lines
from ..json_patch.apply import copy_json, join_pointer, look, same_json, split_pointer
from ..json_patch.share import Op, patched
from ..states.fold import fold_patches
from ..states.history import History

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Blame:
    """One change of the value at `path`, in step `step`.

    `old` is None if `op` is "add", and `new` is None if `op` is "remove". `kind` is the kind of the record that holds
    the change: the step's commit, or a `resume` or `end` before this commit.
    """

    step: int
    path: str
    op: Op
    old: Any
    new: Any
    kind: str = "commit"


def blame(lines: Lines, history: History, pattern: str) -> Iterator[Blame]:
    """Yield each change of a value whose path matches `pattern`, in order.

    `pattern` is a JSON Pointer in which `*` stands for any one member or index, and a final `**` for everything below,
    down to the smallest parts that changed. The values *at* the paths are compared: removing the first item of a list
    changes the value at each index of the list.

    The document is folded in place, so a patch costs only what it changes. If a whole container matches, or items of a
    list move, old and new are both needed: then each container on the way to the change is copied shallowly.
    """
    walk = Walk(split_pointer(pattern))
    step, begun = 0, False
    for ordinal, index in enumerate(history.patching):
        record = lines.record(index)
        patch = record.get("patch") or []
        if patch and not begun:
            walk.doc, begun = copy_json(history.at(ordinal)), True
        try:
            found = walk.apply(patch)
        except PatchError as error:
            reason = f"the patch does not fit the state: {error}"
            raise TraceCorruptError(reason, index + 1, path=lines.path) from None
        for path, old, new in found:
            op: Op = "add" if old is _MISSING else "remove" if new is _MISSING else "replace"
            was, now = (None if value is _MISSING else value for value in (old, new))
            yield Blame(step, join_pointer(path), op, was, now, record.kind)
        step += record.kind == "commit"


def is_missing(value: Any) -> bool:
    """Return whether a value of `Walk.apply` stands for a missing value."""
    return value is _MISSING


_Found = tuple[tuple[str | int, ...], Any, Any]


class Walk:
    """A trace's document, changed patch by patch, and the matching changes."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.doc: Any = None
        self.sharing = False
        """True if callers hold values of the document: those parts are then changed in copies."""

    def apply(self, patch: list[dict[str, Any]]) -> list[_Found]:
        """Apply a patch and return what it changed at the paths."""
        seen = [(op, split_pointer(op["path"])) for op in patch]
        touching = [path for _, path in seen if _meets(path, self.tokens)]
        if not touching:
            self.doc = fold_patches(self.doc, [patch])
            return []
        if all(path for _, path in seen):  # root members that the pattern cannot match are changed in place
            ours = {path[0] for path in touching}
            self.doc = fold_patches(self.doc, [[op for op, path in seen if path[0] not in ours]])
            seen = [(op, path) for op, path in seen if path[0] in ours]
        ops = [op for op, _ in seen]
        if not self.sharing and _apart([path for _, path in seen]):
            places = [_place(self.doc, op, path, self.tokens) for op, path in seen]
            if None not in places:
                self.doc = fold_patches(self.doc, [ops])
                return [found for place in places if place is not None for found in self._at(place)]
        self.sharing = True
        old, self.doc = self.doc, patched(self.doc, ops)
        return list(_differences(old, self.doc, self.tokens, ()))

    def _at(self, place: "_Place") -> Iterator[_Found]:
        if place.left is None:
            return
        new = _MISSING if place.removed else look(self.doc, place.path)
        for path, was, now in _differences(place.old, new, place.left, tuple(place.path)):
            yield path, was, now if now is _MISSING else copy_json(now)  # a later patch may change this value in place


class _Place(NamedTuple):
    """The value that an operation sets or removes, with its `old` value.

    `left` holds the pattern's tokens below this value; it is None if the pattern does not match the value.
    """

    path: list[str]
    old: Any
    removed: bool
    left: list[str] | None


def _place(doc: Any, op: dict[str, Any], path: list[str], tokens: list[str]) -> _Place | None:
    """Return the one value that an operation changes.

    Returns None if the operation changes several values, or a container of the value matches.
    """
    if not path or not _meets(path, tokens):
        return _Place(path, _MISSING, False, None) if path else None
    parent, last = look(doc, path[:-1]), path[-1]
    if isinstance(parent, list):
        if last == "-":
            path = [*path[:-1], str(len(parent))]
        elif op["op"] != "replace" and last != str(len(parent) - (op["op"] == "remove")):
            return None  # items of the list move
    left = tokens
    for number, token in enumerate(path):
        if not left:
            return None  # a container of the value matches
        if left[0] == "**":
            if len(left) > 1:
                return None
            break
        if left[0] not in ("*", token):
            return _Place(path, _MISSING, False, None)
        left = tokens[number + 1 :]
    return _Place(path, _child(parent, path[-1]), op["op"] == "remove", left)


def _meets(path: list[str], tokens: list[str]) -> bool:
    """Return whether a change at `path` can change a matching value.

    A change may move the items of a list.
    """
    for name, token in zip(path[:-1], tokens, strict=False):
        if token == "**":
            return True
        if token not in ("*", name):
            return False
    return True


def _apart(paths: list[list[str]]) -> bool:
    """Return whether no path equals another or leads into it.

    Only then can all old values be looked up before the first change.
    """
    known = {tuple(path) for path in paths}
    return len(known) == len(paths) and not any(
        tuple(path[:length]) in known for path in paths for length in range(len(path))
    )


def _differences(old: Any, new: Any, tokens: list[str], path: tuple[str | int, ...]) -> Iterator[_Found]:
    if old is new:
        return
    if not tokens:
        if old is _MISSING or new is _MISSING or not same_json(old, new):
            yield path, old, new
        return
    token, rest = tokens[0], tokens[1:]
    if token == "**":
        if rest:
            yield from _differences(old, new, rest, path)
        elif not (_is_container(old) and type(old) is type(new)):
            yield from _differences(old, new, [], path)
            return
        rest = tokens
    for name in _names(old, new) if token in ("*", "**") else [token]:
        yield from _differences(_child(old, name), _child(new, name), rest, (*path, name))


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _names(old: Any, new: Any) -> list[str]:
    names: dict[str, None] = {}
    for value in (old, new):
        if isinstance(value, dict):
            names.update(dict.fromkeys(value))
        elif isinstance(value, list):
            names.update(dict.fromkeys(map(str, range(len(value)))))
    return list(names)


def _child(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _MISSING)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return _MISSING
