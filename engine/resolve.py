"""Turns a draft into its frozen value, looking only at what was touched, and at what was changed past its methods."""

from collections.abc import Callable
from operator import is_, is_not
from sys import getrefcount
from typing import Any

from .draft import Node
from .draft_dict import DraftDict
from .draft_list import DraftList
from .draft_model import ModelDraft
from .errors import StateValueError
from .frozen import FrozenDict, FrozenList, frozen_dict, frozen_list
from .json_form import COMPARISON, PLAIN
from .passage import MAX_DEPTH, Freezer
from .runs import Run, gaps
from .shape import DRAFT_RESOLVERS, freeze_dict, freeze_list, shown_key
from .state import built
from .unseen import EQUAL, OTHER, stands

_get_item, _set_item = list.__getitem__, list.__setitem__
_get_member, _set_member = dict.__getitem__, dict.__setitem__

_probe = {"x": object()}
_all_drafts = [_probe["x"]]
_ALONE = getrefcount(_probe["x"])
"""What is counted for a draft that only its place and its scope refer to; measured, as interpreters differ."""


def _same(old: Any, held: Any, freezer: Freezer) -> bool:
    """Whether a touched place holds what it held before; a draft that knows it has changed settles it unread."""
    if held is old:
        return True
    kind = type(held)
    if kind in PLAIN:
        return kind is type(old) and bool(held == old) and (kind is not float or held.hex() == old.hex())
    hint = freezer.hints.get(id(held))
    return (hint is None or hint.base is not old) and COMPARISON.same(old, held)


def resolve_list(draft: Any, shape: Any, freezer: Freezer) -> Any:
    """The FrozenList of a list draft; its base itself when nothing has changed."""
    node: Node = draft.meta
    if shape is not node.shape:
        return freeze_list(shape, draft, freezer)
    done = freezer.resolved.get(id(draft))
    if done is not None:
        return done
    own = id(draft) in freezer.alone
    work: list[Any] = draft if own else _get_item(draft, slice(None))
    stack = freezer.stack
    stack.append(draft)
    if len(stack) > MAX_DEPTH:
        raise freezer.too_deep()
    changed = _settle_items(work, node, shape.item.freeze, freezer)
    stack.pop()
    frozen: Any = node.base
    if changed is not None:
        frozen = draft if own else frozen_list(work, shape)
        if own:
            draft.__class__ = FrozenList
            draft.meta = shape
        if node.moved is None and not node.touched:  # only appended to: its digest goes on from the base's
            frozen.known = getattr(node.base, "known", None)
        _keep_kinds(frozen, node.base, changed)
        freezer.hints[id(frozen)] = node
    freezer.resolved[id(draft)] = frozen
    return frozen


def _settle_items(work: list[Any], node: Node, freeze: Callable[..., Any], freezer: Freezer) -> list[Any] | None:
    """Freezes the touched and the new items of a list; returns those that are not the base's, None for no change.

    Items in runs that were not touched are the base's. Where that is not so, code in C has moved or set items past the
    draft's methods: then all of them are looked at.
    """
    base = node.base
    size, new_size = list.__len__(base), list.__len__(work)
    if node.moved is None and new_size < size:
        node.moved = []
    runs = [Run(0, 0, size)] if node.moved is None else node.moved
    held = _lift(work, base, runs, node)
    if held is None:
        node.moved = runs = []
        held = []
    changed: list[Any] | None = None
    fresh: list[Any] = []
    j = 0
    try:
        for i, j, item in held:
            old = _get_item(base, i)
            frozen = freeze(item, freezer)
            if frozen is not old and not _same(old, frozen, freezer):
                _set_item(work, j, frozen)
                fresh.append(frozen)
                changed = fresh
        for i1, i2, j1, j2 in gaps(runs, size, new_size):
            for j in range(j1, j2):
                _set_item(work, j, freeze(_get_item(work, j), freezer))
            was, now = _get_item(base, slice(i1, i2)), _get_item(work, slice(j1, j2))
            if len(was) == len(now) and all(_same(a, b, freezer) for a, b in zip(was, now, strict=True)):
                _set_item(work, slice(j1, j2), was)
            else:
                fresh += now
                changed = fresh
    except StateValueError as error:
        for _, place, item in held:  # a validator may yet make something of the list as it was
            _set_item(work, place, item)
        raise error.under(j) from None
    return changed


def _lift(work: list[Any], base: Any, runs: list[Run], node: Node) -> list[tuple[int, int, Any]] | None:
    """Takes the touched items out of a list, each with its index in the base and here, and puts the base's there.

    Returns None, and leaves the list as it is, where other items in the runs are not the base's.
    """
    size, new_size = list.__len__(base), list.__len__(work)
    if runs and runs[-1].at + runs[-1].size > new_size:
        return None
    held: list[tuple[int, int, Any]] = []
    for at, start, count in runs if node.touched else ():
        for i in node.touched if count == size else [i for i in node.touched if start <= i < start + count]:
            j = at + i - start
            held.append((i, j, _get_item(work, j)))
            _set_item(work, j, _get_item(base, i))
    for at, start, count in runs:
        if count == size <= new_size and not at:  # the usual case, without copies
            old, now, rest = base, work, _get_item(work, slice(size, None))
            list.__delitem__(work, slice(size, None))
            found = stands(old, now, base)
            list.extend(work, rest)
        else:
            old = _get_item(base, slice(start, start + count))
            found = stands(old, _get_item(work, slice(at, at + count)), base)
        if found == OTHER:
            for _, j, item in held:
                _set_item(work, j, item)
            return None
        if found == EQUAL:
            _set_item(work, slice(at, at + count), old)
    return held


def _keep_kinds(frozen: Any, base: Any, changed: list[Any]) -> None:
    """Lets a list or dict know of its items' types what its base knew, so that they need not all be asked again."""
    kinds = getattr(base, "kinds", None)
    if kinds is not None:
        frozen.kinds = kinds.union(map(type, changed))


def resolve_dict(draft: Any, shape: Any, freezer: Freezer) -> Any:
    """The FrozenDict of a dict draft; its base itself when nothing has changed."""
    node: Node = draft.meta
    done = freezer.resolved.get(id(draft))
    if done is not None and shape is node.shape:
        return done
    base, touched, removed = node.base, node.touched, node.moved or {}
    added = [key for key in touched if key not in base or key in removed] if touched else []
    if shape is not node.shape or not all(key in base or _key_stays(shape, key, freezer) for key in added):
        return freeze_dict(shape, draft, freezer)
    own = id(draft) in freezer.alone
    work: Any = draft if own else frozen_dict(dict.items(draft), shape)
    held = _lift_members(work, base, added, node)
    if held is None:  # code in C has changed members past the draft's methods: all of them are looked at
        return freeze_dict(shape, draft, freezer)
    stack = freezer.stack
    stack.append(draft)
    if len(stack) > MAX_DEPTH:
        raise freezer.too_deep()
    changed = _settle_members(work, base, held, shape.item.freeze, freezer)
    stack.pop()
    frozen: Any = base
    if changed or (removed and list(base) != list(dict.keys(work))):
        frozen = work
        if own:
            draft.__class__ = FrozenDict
            frozen.meta = shape
        _keep_kinds(frozen, base, changed)
        freezer.hints[id(frozen)] = node
    freezer.resolved[id(draft)] = frozen
    return frozen


def _lift_members(work: Any, base: Any, added: list[Any], node: Node) -> dict[Any, Any] | None:
    """Takes the touched members out of a dict, and puts the base's there; the new ones stay.

    Returns None, and leaves the dict as it is, where it holds other members than those, or in another order.
    """
    kept = [key for key in base if key not in node.moved] if node.moved else [*base]
    size = len(kept)
    if [*dict.keys(work)] != (kept + added if added else kept):
        return None
    held = {key: _get_member(work, key) for key in node.touched}
    mine = held.keys() - added if added else held
    for key in mine:
        _set_member(work, key, _get_member(base, key))
    old = [_get_member(base, key) for key in kept] if node.moved else [*dict.values(base)]
    now = [*dict.values(work)]
    del now[size:]
    found = stands(old, now, base)
    if found == OTHER:
        for key in mine:
            _set_member(work, key, held[key])
        return None
    if found == EQUAL and any(map(is_not, old, now)):
        for key in kept:
            _set_member(work, key, _get_member(base, key))
    return held


def _settle_members(work: Any, base: Any, held: dict[Any, Any], freeze: Callable[..., Any], freezer: Freezer) -> Any:
    """Freezes the touched members of a dict; returns those that are not the base's."""
    fresh: list[Any] = []
    key: Any = ""
    try:
        for key, item in held.items():
            frozen = freeze(item, freezer)
            if key in base:
                old = _get_member(base, key)
                if frozen is old or _same(old, frozen, freezer):
                    _set_member(work, key, old)
                    continue
            _set_member(work, key, frozen)
            fresh.append(frozen)
    except StateValueError as error:
        for name, item in held.items():  # a validator may yet make something of the dict as it was
            _set_member(work, name, item)
        raise error.under(shown_key(key)) from None
    return fresh


def _key_stays(shape: Any, key: Any, freezer: Freezer) -> bool:
    """Whether a new key is already in its frozen form."""
    if shape.key is None:
        return type(key) is str and key.isascii()
    try:
        frozen = shape.key.freeze(key, freezer)
    except StateValueError:
        return False
    return type(frozen) is type(key) and bool(frozen == key)


def resolve_model(draft: Any, shape: Any, freezer: Freezer) -> Any:
    """The frozen model of a model draft; its base itself when nothing has changed. `shape` is None: models only."""
    node: Node = draft._refold_node
    cls = node.shape
    if shape is not None:
        raise StateValueError(
            f"a {cls.__name__} cannot stand here: {shape.label} is not declared to hold state models; "
            "model_dump() gives a plain dict"
        )
    done = freezer.resolved.get(id(draft))
    if done is not None:
        return done
    stack = freezer.stack
    stack.append(draft)
    if len(stack) > MAX_DEPTH:
        raise freezer.too_deep()
    values = _fields(draft, node)
    changed = _settle_fields(values, node, cls.__refold_shapes__, freezer)
    stack.pop()
    made = built(cls, values) if changed else node.base
    if changed and node.base is not None and all(map(is_, made.__dict__.values(), values.values())):
        freezer.hints[id(made)] = node
    freezer.resolved[id(draft)] = made
    return made


def _fields(draft: Any, node: Node) -> dict[str, Any]:
    """The values of a model draft's fields; those that were written past the draft become touched."""
    cls = node.shape
    values: dict[str, Any] = dict(draft.__dict__)
    shapes = cls.__refold_shapes__
    if [*values] != [*shapes]:
        for name in [*values, *shapes]:
            if name not in values:
                raise StateValueError(f"{cls.__name__}.{name} was deleted; a field has a value, None where it may")
            if name not in shapes:
                raise StateValueError(f"{cls.__name__} has no field {name!r}; its fields are {', '.join(shapes)}")
        values = {name: values[name] for name in shapes}
    if node.base is not None:
        for name, value in node.base.__dict__.items():
            if values[name] is not value:
                node.touched[name] = None
    return values


def _settle_fields(values: dict[str, Any], node: Node, shapes: Any, freezer: Freezer) -> bool:
    """Freezes the touched fields of a model, or all of a new one's."""
    fresh = node.base is None
    old_values = values if fresh else node.base.__dict__
    changed = fresh
    name = ""
    try:
        for name in shapes if fresh else node.touched:
            if freezer.consuming and type(values[name]) in _CONSUMABLE and getrefcount(values[name]) == _ALONE + 1:
                freezer.alone.add(id(values[name]))
            held = shapes[name].freeze(values[name], freezer)
            old = old_values[name]
            if held is not old:
                if not fresh and _same(old, held, freezer):
                    held = old
                else:
                    changed = True
            values[name] = held
    except StateValueError as error:
        raise error.under(name) from None
    return changed


_CONSUMABLE = frozenset({DraftList, DraftDict})
DRAFT_RESOLVERS[DraftList] = resolve_list
DRAFT_RESOLVERS[DraftDict] = resolve_dict
DRAFT_RESOLVERS[ModelDraft] = resolve_model
