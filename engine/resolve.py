"""Turns a draft into its frozen value, looking only at what was touched."""

from collections.abc import Callable
from itertools import compress, count
from operator import is_not
from sys import getrefcount
from typing import Any

from .draft import Loan, Node
from .draft_dict import DraftDict
from .draft_list import DraftList
from .draft_model import ModelDraft
from .errors import StateValueError
from .frozen import FrozenDict, FrozenList
from .json_form import COMPARISON, PLAIN
from .passage import MAX_DEPTH, Freezer
from .runs import gaps
from .shape import DRAFT_RESOLVERS, freeze_dict, freeze_list, shown_key
from .state import built

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
    own = id(draft) in freezer.alone
    if node.loan is not None:
        if own and shape is node.shape:
            return _resolve_lent(draft, node.loan, shape, freezer)
        draft.own()
        own = False
    if shape is not node.shape:
        return freeze_list(shape, draft, freezer)
    done = freezer.resolved.get(id(draft))
    if done is not None:
        return done
    work: list[Any] = draft if own else _get_item(draft, slice(None))
    stack = freezer.stack
    stack.append(draft)
    if len(stack) > MAX_DEPTH:
        raise freezer.too_deep()
    if node.moved is None and shape.heaped and _moved_unseen(work, node):
        node.moved = []
    settle = _settle_in_place if node.moved is None else _settle_moved
    changed = settle(work, node, shape.item.freeze, freezer)
    stack.pop()
    frozen: Any = node.base
    if changed:
        if own:
            draft.__class__ = FrozenList
        frozen = draft if own else FrozenList(work)
        frozen.meta = shape
        if node.moved is None and not node.touched:  # only appended to: its digest goes on from the base's
            frozen.known = getattr(node.base, "known", None)
        freezer.hints[id(frozen)] = node
    freezer.resolved[id(draft)] = frozen
    return frozen


def _resolve_lent(draft: Any, loan: Loan, shape: Any, freezer: Freezer) -> Any:
    """The lent list with what was appended to it, frozen again: the same list in the old state and in the new one."""
    freezer.enter(draft)
    freeze = shape.item.freeze
    i = loan.size
    size = list.__len__(draft)
    try:
        for i in range(loan.size, size):
            _set_item(draft, i, freeze(_get_item(draft, i), freezer))
    except StateValueError as error:
        raise error.under(i) from None
    freezer.stack.pop()
    draft.__class__ = FrozenList
    draft.meta = shape
    if size > loan.size:
        freezer.grown[id(draft)] = loan.size
    return draft


def _moved_unseen(work: list[Any], node: Node) -> bool:
    """Whether items have moved though no method of the draft was called: `heapq` writes into the list itself."""
    base, touched = node.base, node.touched
    differ = compress(count(), map(is_not, list.__iter__(base), list.__iter__(work)))
    return list.__len__(work) < list.__len__(base) or any(i not in touched for i in differ)


def _settle_in_place(work: Any, node: Node, freeze: Callable[..., Any], freezer: Freezer) -> bool:
    """Freezes the touched and the new items of a list whose base items all stand where they stood."""
    base = node.base
    size, new_size = list.__len__(base), list.__len__(work)
    changed = new_size != size
    i = 0
    try:
        for i in node.touched:
            old = _get_item(base, i)
            held = freeze(_get_item(work, i), freezer)
            if held is not old:
                if _same(old, held, freezer):
                    held = old
                else:
                    changed = True
            _set_item(work, i, held)
        for i in range(size, new_size):
            _set_item(work, i, freeze(_get_item(work, i), freezer))
    except StateValueError as error:
        raise error.under(i) from None
    return changed


def _settle_moved(work: Any, node: Node, freeze: Callable[..., Any], freezer: Freezer) -> bool:
    """Freezes the touched and the new items of a list whose items have moved."""
    base = node.base
    changed = False
    j = 0
    try:
        for at, start, size in node.moved:
            for i in [i for i in node.touched if start <= i < start + size]:
                j = at + i - start
                old = _get_item(base, i)
                held = freeze(_get_item(work, j), freezer)
                same = _same(old, held, freezer)
                _set_item(work, j, old if same else held)
                changed = changed or not same
        for i1, i2, j1, j2 in gaps(node.moved, list.__len__(base), list.__len__(work)):
            for j in range(j1, j2):
                _set_item(work, j, freeze(_get_item(work, j), freezer))
            was, now = _get_item(base, slice(i1, i2)), _get_item(work, slice(j1, j2))
            if len(was) == len(now) and all(_same(a, b, freezer) for a, b in zip(was, now, strict=True)):
                _set_item(work, slice(j1, j2), was)
            else:
                changed = True
    except StateValueError as error:
        raise error.under(j) from None
    return changed


def resolve_dict(draft: Any, shape: Any, freezer: Freezer) -> Any:
    """The FrozenDict of a dict draft; its base itself when nothing has changed."""
    node: Node = draft.meta
    done = freezer.resolved.get(id(draft))
    if done is not None and shape is node.shape:
        return done
    base = node.base
    if shape is not node.shape or not all(key in base or _key_stays(shape, key, freezer) for key in node.touched):
        return freeze_dict(shape, draft, freezer)
    own = id(draft) in freezer.alone
    work: Any = draft if own else FrozenDict(dict.items(draft))
    stack = freezer.stack
    stack.append(draft)
    if len(stack) > MAX_DEPTH:
        raise freezer.too_deep()
    changed = _settle_members(work, node, shape.item.freeze, freezer)
    stack.pop()
    frozen: Any = base
    if changed or (node.moved and list(base) != list(dict.keys(work))):
        if own:
            draft.__class__ = FrozenDict
        frozen = work
        frozen.meta = shape
        freezer.hints[id(frozen)] = node
    freezer.resolved[id(draft)] = frozen
    return frozen


def _settle_members(work: Any, node: Node, freeze: Callable[..., Any], freezer: Freezer) -> bool:
    """Freezes the touched members of a dict."""
    base = node.base
    changed = dict.__len__(work) != dict.__len__(base)
    key: Any = ""
    try:
        for key in node.touched:
            held = freeze(_get_member(work, key), freezer)
            if key in base:
                old = _get_member(base, key)
                if held is not old:
                    if _same(old, held, freezer):
                        held = old
                    else:
                        changed = True
            _set_member(work, key, held)
    except StateValueError as error:
        raise error.under(shown_key(key)) from None
    return changed


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
    values = draft.__dict__ if freezer.consuming else dict(draft.__dict__)
    changed = _settle_fields(values, node, cls.__refold_shapes__, freezer)
    stack.pop()
    made = built(cls, values) if changed else node.base
    if changed and node.base is not None and made.__dict__ is values:
        freezer.hints[id(made)] = node
    freezer.resolved[id(draft)] = made
    return made


def _settle_fields(values: dict[str, Any], node: Node, shapes: Any, freezer: Freezer) -> bool:
    """Freezes the touched fields of a model, or all of a new one's."""
    fresh = node.base is None
    old_values = values if fresh else node.base.__dict__
    changed = fresh
    name = ""
    try:
        for name in shapes if fresh else node.touched:
            if freezer.consuming and type(values[name]) in _CONSUMABLE and _alone(values, name):
                freezer.alone.add(id(values[name]))
            held = shapes[name].freeze(values[name], freezer)
            old = old_values[name]  # looked up now: freezing may have given a lent list back
            if held is old:
                changed = changed or id(held) in freezer.grown
            elif not fresh and _same(old, held, freezer):
                held = old
            else:
                changed = True
            values[name] = held
    except StateValueError as error:
        raise error.under(name) from None
    return changed


def _alone(values: dict[str, Any], name: str) -> bool:
    """Whether nobody but the engine refers to a draft: its place and its scope, for a lent list also its old state."""
    lent = type(values[name]) is DraftList and values[name].meta.loan is not None
    return getrefcount(values[name]) == _ALONE + lent


_CONSUMABLE = frozenset({DraftList, DraftDict})
DRAFT_RESOLVERS[DraftList] = resolve_list
DRAFT_RESOLVERS[DraftDict] = resolve_dict
DRAFT_RESOLVERS[ModelDraft] = resolve_model
