"""Freezes a draft and, in the same pass, writes its JSON Patch.

The base of a draft is the frozen value from which it was made. The pass visits two kinds of members: those that the
draft's node records as touched, and those that code in C (`heapq`, `bisect`) or a write to `__dict__` changed past the
draft's methods. All others stay the base's very objects, so the new state shares them with the old one.

A visited member is settled in one of two ways:

    in place    a draft at the place of its own base: `settle` goes into it, and each change inside appends its
                operation with its full path, such as `replace /notes/3/text`
    compared    any other value (new, moved from elsewhere, or in a field with validators of its own): its shape
                freezes it, and a comparison of the old value with the new one makes the operations

`settle_model`, `_settle_list` and `_settle_dict` settle in place. `resolve_model` and `resolve_container` freeze a
draft wherever it is; the shapes call them through DRAFT_RESOLVERS.

Operations apply one after the other, so their order matters. For a list: first the items changed in place, under their
old indices; then the stretches that were inserted, removed or replaced, the last stretch first, so that no operation
shifts the index of a later one. For a dict: first removals, then changes, then new members, which go to the end.

    base [a, b, c], then `del items[0]` and `items[1].text = "x"`:    replace /2/text, remove /0

Three rules keep the result right and fast. A value that turns out to be the same JSON as before becomes the base's
object again, and has no operation. A draft at several places becomes one frozen value (`freezer.resolved`). In the last
pass of a reduce, a list or dict draft with no reference from outside (`node.alone`) becomes its frozen value without a
copy.
"""

from collections.abc import Callable
from itertools import compress
from operator import is_, is_not
from sys import getrefcount
from typing import Any

from ....errors import StateValueError
from ....traces.json_patch.diff import Op, Span, key_token
from ..frozen import MAX_DEPTH, Freezer, FrozenDict, FrozenList, frozen_dict, frozen_list
from ..model import built, no_field
from ..serialization import COMPARISON, PLAIN
from ..shapes.containers import DRAFT_RESOLVERS, AnyShape, ListShape, freeze_dict, freeze_list, shown_key
from ..shapes.fields import ModelShape
from ..shapes.scalars import INT_MAX, INT_MIN, ScalarShape
from ..shapes.unions import UnionShape
from .draft import Node
from .draft_dict import DraftDict
from .draft_list import EQUAL, OTHER, SAME, DraftList, stands
from .draft_model import ModelDraft
from .splices import Run, gaps

_get_item, _set_item = list.__getitem__, list.__setitem__
_get_member, _set_member = dict.__getitem__, dict.__setitem__


def _count_of_lone_draft() -> int:
    """Return the reference count of a draft that only the engine holds.

    The draft is held as `settle_model` holds it. Interpreters differ: since 3.14, passing on a local name adds no
    reference.
    """
    scope = [object()]
    fields = {"x": scope[0]}
    values = dict(fields)
    value = values["x"]
    return getrefcount(value)


_ALONE = _count_of_lone_draft()
"""The reference count of a draft to which only its scope, its place, and `settle_model` refer."""


def settle(value: Any, shape: Any, old: Any, path: str, freezer: Freezer, ops: list[Op]) -> Any:
    """Return the frozen form of `value`, or `old` if both are equal.

    Appends the operations from `old` to the result, at the JSON Pointer `path`. If `value` is a draft of `old`, it is
    settled in place, member by member; otherwise `shape` freezes it and the two are compared.
    """
    kind = type(value)
    if kind in PLAIN:
        # Most changed leaves are short text or small numbers, whose frozen form is the value itself.
        own = type(shape) is ScalarShape and shape.kind is kind
        if own and (value.isascii() if kind is str else kind is int and INT_MIN <= value <= INT_MAX):
            if kind is type(old) and value == old:
                return old
            ops.append({"op": "replace", "path": path, "value": value})
            return value
        frozen = shape.freeze(value, freezer)
    else:
        in_place = _IN_PLACE.get(kind) or (settle_model if issubclass(kind, ModelDraft) else None)
        if in_place is not None and id(value) not in freezer.resolved:
            node: Node = value._refold_node if in_place is settle_model else value.meta
            if node.base is old and (node.shape is shape or _stands_in(node.shape, shape, value)):
                return in_place(value, node, freezer, path, ops)
        frozen = shape.freeze(value, freezer)
    if frozen is old:
        return old
    kind = type(frozen)
    if kind not in PLAIN:
        made = COMPARISON.make_patch(old, frozen, path)
        ops += made
        return frozen if made else old
    # -0.0 equals 0.0, but is other JSON; `hex` tells them apart.
    if kind is type(old) and (frozen == old if kind is not float else frozen.hex() == old.hex()):
        return old
    ops.append({"op": "replace", "path": path, "value": frozen})
    return frozen


def _stands_in(own: Any, shape: Any, value: Any) -> bool:
    """Return whether a draft of the shape `own` fits a place's `shape`.

    This is false for a CheckedShape: its validators must see the frozen value, so the draft cannot be settled in place.
    """
    if type(shape) is UnionShape:
        shape = shape.branch_of(value)
    return shape is own or (type(shape) is ModelShape and shape.cls is own)


def resolve_container(draft: Any, shape: Any, freezer: Freezer) -> Any:
    """Return a list's or dict's frozen value, its base if unchanged."""
    node: Node = draft.meta
    if shape is not node.shape:
        takes_list = type(shape) is ListShape or (type(shape) is AnyShape and type(draft) is DraftList)
        return (freeze_list if takes_list else freeze_dict)(draft, shape, freezer)
    done = freezer.resolved.get(id(draft))
    return done if done is not None else _IN_PLACE[type(draft)](draft, node, freezer, "", [])


def _settle_list(draft: Any, node: Node, freezer: Freezer, path: str, ops: list[Op]) -> Any:
    """Settle a list draft in place, with operations in the order above."""
    base, shape = node.base, node.shape
    # If nobody else refers to the draft, it becomes the frozen list itself. Otherwise a copy does.
    work: Any = draft if node.alone else frozen_list(_get_item(draft, slice(None)), shape)
    freezer.append(draft)
    if len(freezer) > MAX_DEPTH:
        raise freezer.too_deep()
    first = len(ops)
    changed = _settle_items(work, node, freezer, path, ops)
    freezer.pop()
    frozen: Any = base
    if changed is not None:
        frozen = work
        if node.alone:
            draft.__class__ = FrozenList
            draft.meta = shape
        if node.moved is None and not node.touched:  # only appended to: its digest continues from the base's
            frozen.known = getattr(base, "known", None)
        kinds = getattr(base, "kinds", None)
        if kinds is not None:  # types of removed items remain, so the new `kinds` may hold too many
            frozen.kinds = kinds.union(map(type, changed))
        if node.moved is not None:
            for gap in reversed(gaps(node.moved, len(base), len(frozen))):
                COMPARISON.compare_span(base, frozen, Span(*gap), path, ops)
        if len(ops) - first > 4:  # `shortest` does nothing up to 16 operations; this saves most calls of it
            ops[first:] = COMPARISON.shortest(ops[first:], frozen, path)
    freezer.resolved[id(draft)] = frozen
    return frozen


def _settle_items(work: list[Any], node: Node, freezer: Freezer, path: str, ops: list[Op]) -> list[Any] | None:
    """Freeze the touched and the new items of `work`.

    Appends the operations for items that were changed in place or appended. Returns the items that are not the base's
    (none, if items were only removed), or None if nothing has changed. The caller makes the operations for moved,
    inserted and removed items.

    Untouched items in the runs must be the base's objects. Otherwise code in C has changed the list past the draft's
    methods: the runs are dropped, and every item is frozen and compared.
    """
    base, item_shape = node.base, node.shape.item
    size, new_size = list.__len__(base), list.__len__(work)
    if node.moved is None and new_size < size:  # code in C has removed items
        node.moved = []
    runs = [Run(0, 0, size)] if node.moved is None else node.moved
    held = _lift(work, base, runs, node)
    if held is None:
        node.moved = runs = []
        held = []
    changed: list[Any] = []
    other = False
    j = 0
    try:
        for i, j, item in held:
            old = _get_item(base, i)
            frozen = settle(item, item_shape, old, f"{path}/{i}", freezer, ops)
            if frozen is not old:
                _set_item(work, j, frozen)
                changed.append(frozen)
        other = bool(changed)
        freeze = item_shape.freeze
        if node.moved is None:
            end = f"{path}/-"
            takes_text = str in node.shape.quick
            for j in range(size, new_size):
                frozen = _get_item(work, j)
                if not (takes_text and type(frozen) is str and frozen.isascii()):
                    frozen = freeze(frozen, freezer)
                    _set_item(work, j, frozen)
                changed.append(frozen)
                ops.append({"op": "add", "path": end, "value": frozen})
            return changed if changed else None
        for i1, i2, j1, j2 in gaps(runs, size, new_size):
            for j in range(j1, j2):
                _set_item(work, j, freeze(_get_item(work, j), freezer))
            was, now = _get_item(base, slice(i1, i2)), _get_item(work, slice(j1, j2))
            if len(was) == len(now) and all(map(COMPARISON.same, was, now)):
                _set_item(work, slice(j1, j2), was)
            else:
                changed += now
                other = True
    except StateValueError as error:
        for _, place, item in held:  # a field's `before` validator is tried next, and must see the list as it was
            _set_item(work, place, item)
        raise error.under(j) from None
    return changed if other else None


def _lift(work: list[Any], base: Any, runs: list[Run], node: Node) -> list[tuple[int, int, Any]] | None:
    """Take the touched items out of `work`, and check the other items.

    The base's items take the places of the touched items, so that all runs must now match the base. Returns (index in
    the base, index in `work`, item) of each touched item. Returns None, with `work` as it was, if an untouched item in
    the runs is not the base's. Lifting the touched items first makes the check one fast comparison of whole lists (see
    `draft_list`).
    """
    size, new_size = list.__len__(base), list.__len__(work)
    if runs and runs[-1].at + runs[-1].size > new_size:
        return None
    held: list[tuple[int, int, Any]] = []
    if size == 0 and node.moved is None:
        return held
    for at, start, count in runs if node.touched else ():
        for i in node.touched if count == size else [i for i in node.touched if start <= i < start + count]:
            j = at + i - start
            held.append((i, j, _get_item(work, j)))
            _set_item(work, j, _get_item(base, i))
    for at, start, count in runs:
        if count == size <= new_size and not at:  # the usual case: the whole base, perhaps with items appended
            # Cutting off the appended items, and putting them back, saves a copy of the list.
            old, now, rest = base, work, _get_item(work, slice(size, None))
            list.__delitem__(work, slice(size, None))
            found = stands(old, now, base)
            if found == EQUAL:  # the base's items again, by a copy: to replace them in their places costs twice that
                list.clear(work)
                list.extend(work, base)
                found = SAME
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


def _settle_dict(draft: Any, node: Node, freezer: Freezer, path: str, ops: list[Op]) -> Any:
    """Settle a dict draft in place: removals, changes, new members.

    A member that was removed and set again goes to the end, as it does in a dict.
    """
    base, shape, removed = node.base, node.shape, node.moved
    # The draft's keys must be the base's, without the removed ones, and then new keys in their frozen form.
    kept = [key for key in base if key not in removed] if removed else [*base]
    size, names = len(kept), [*dict.keys(draft)]
    if names[:size] != kept or not all(_key_stays(shape, key, freezer) for key in names[size:]):
        # a key to be frozen, or removed past the draft's methods: freeze and compare the whole dict
        frozen = freezer.resolved[id(draft)] = freeze_dict(draft, shape, freezer)
        ops += COMPARISON.make_patch(base, frozen, path)
        return frozen
    was = [_get_member(base, key) for key in kept] if removed else dict.values(base)
    held = {key: _get_member(draft, key) for key in compress(kept, map(is_not, dict.values(draft), was))}
    work: Any = draft if node.alone else frozen_dict(dict.items(draft), shape)
    freezer.append(draft)
    if len(freezer) > MAX_DEPTH:
        raise freezer.too_deep()
    first = len(ops)
    key: Any
    for key in removed or ():
        ops.append({"op": "remove", "path": f"{path}/{key_token(key)}"})
    changed: list[Any] = []
    item_shape = shape.item
    try:
        for key, item in held.items():
            old = _get_member(base, key)
            token = key if type(key) is str and key.isalnum() else key_token(key)
            frozen = settle(item, item_shape, old, f"{path}/{token}", freezer, ops)
            _set_member(work, key, frozen)
            if frozen is not old:
                changed.append(frozen)
        for key in names[size:]:
            item = _get_member(work, key)
            frozen = item_shape.freeze(item, freezer)
            if key in base and COMPARISON.same(old := _get_member(base, key), frozen):
                frozen = old
            else:
                changed.append(frozen)
            held[key] = item
            _set_member(work, key, frozen)
            ops.append({"op": "add", "path": f"{path}/{key_token(key)}", "value": frozen})
    except StateValueError as error:
        for name, item in held.items():  # a field's `before` validator is tried next, and must see the dict as it was
            _set_member(work, name, item)
        raise error.under(shown_key(key)) from None
    freezer.pop()
    made: Any = base
    if changed or (removed and names != [*base]):
        made = work
        if node.alone:
            draft.__class__ = FrozenDict
            made.meta = shape
    else:  # members were removed and set again, with the same values in the same order
        del ops[first:]
    freezer.resolved[id(draft)] = made
    return made


def _key_stays(shape: Any, key: Any, freezer: Freezer) -> bool:
    """Return whether a new key is already in its frozen form."""
    if shape.key is None:
        return type(key) is str and key.isascii()
    try:
        frozen = shape.key.freeze(key, freezer)
    except StateValueError:
        return False
    return type(frozen) is type(key) and bool(frozen == key)


def resolve_model(draft: Any, shape: Any, freezer: Freezer) -> Any:
    """Return the frozen model of a draft, its base if unchanged.

    `shape` is None at a place for models. Raises StateValueError for any other shape, which cannot hold a model.
    """
    node: Node = draft._refold_node
    if shape is not None:
        raise StateValueError(
            f"{node.shape.__name__} does not fit here: {shape.label} is not declared to hold state models; "
            "model_dump() gives a plain dict"
        )
    done = freezer.resolved.get(id(draft))
    return done if done is not None else settle_model(draft, node, freezer, "", [])


def settle_model(draft: Any, node: Node, freezer: Freezer, path: str, ops: list[Op]) -> Any:
    """Settle a model draft, field by field in the order of changes.

    For a new model, all fields are frozen.
    """
    cls, base = node.shape, node.base
    freezer.append(draft)
    if len(freezer) > MAX_DEPTH:
        raise freezer.too_deep()
    values = _fields(draft, node)
    shapes = cls.__refold_shapes__
    first = len(ops)
    made = base
    name = ""
    try:
        if base is None:
            for name in shapes:
                values[name] = shapes[name].freeze(values[name], freezer)
        else:
            changed = False
            was = base.__dict__
            for name in node.touched:
                value, old = values[name], was[name]
                if value is not old:
                    if freezer.consuming and type(value) in _IN_PLACE and getrefcount(value) == _ALONE:
                        value.meta.alone = True
                    values[name] = held = settle(value, shapes[name], old, f"{path}/{name}", freezer, ops)
                    changed = changed or held is not old
            if not changed:
                freezer.pop()
                freezer.resolved[id(draft)] = base
                return base
    except StateValueError as error:
        raise error.under(name) from None
    freezer.pop()
    made = built(cls, values)
    # The class's own validators may have changed any field: then the operations collected so far are not the whole.
    if base is not None and not all(map(is_, made.__dict__.values(), values.values())):
        ops[first:] = COMPARISON.make_patch(base, made, path)
    freezer.resolved[id(draft)] = made
    return made


def _fields(draft: Any, node: Node) -> dict[str, Any]:
    """Return a model draft's values in field order.

    Fields that were written past the draft become touched. Raises StateValueError if a field was deleted, or a name
    added, in the draft's `__dict__`.
    """
    cls = node.shape
    values: dict[str, Any] = dict(draft.__dict__)
    shapes = cls.__refold_shapes__
    if [*values] != [*shapes]:
        for name in [*values, *shapes]:
            if name not in values:
                raise StateValueError(f"{cls.__name__}.{name} was deleted; set it to another value instead")
            if name not in shapes:
                raise StateValueError(no_field(cls, name))
        values = {name: values[name] for name in shapes}
    if node.base is not None:
        base = node.base.__dict__
        node.touched |= dict.fromkeys(compress(base, map(is_not, map(values.__getitem__, base), base.values())))
    return values


_IN_PLACE: dict[type, Callable[..., Any]] = {DraftList: _settle_list, DraftDict: _settle_dict}
DRAFT_RESOLVERS[DraftList] = DRAFT_RESOLVERS[DraftDict] = resolve_container
DRAFT_RESOLVERS[ModelDraft] = resolve_model
