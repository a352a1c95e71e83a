"""Turns a draft into its frozen value, looking only at what was touched."""

from collections.abc import Callable
from typing import Any

from ..traces.compare import Comparison
from .errors import StateValueError
from .frozen import FrozenDict, FrozenList
from .shape import DictShape, Freezer, ListShape, freeze_dict, freeze_list
from .state import StateModel, assemble, json_default


def _view(value: Any) -> Any:
    return value.__dict__ if isinstance(value, StateModel) else value


COMPARISON = Comparison(_view, json_default)


def _same(old: Any, held: Any, freezer: Freezer) -> bool:
    """Whether a touched place holds what it held before; a draft that knows it has changed settles it unread."""
    if held is old:
        return True
    hint = freezer.hints.get(id(held))
    if hint is not None and hint.base is old:
        return False
    return COMPARISON.same(old, held)


def _once(resolve: Callable[[Any, Freezer], Any]) -> Callable[[Any, Freezer], Any]:
    """A draft in two places gives one frozen value a pass."""

    def resolved(draft: Any, freezer: Freezer) -> Any:
        done = freezer.resolved.get(id(draft))
        if done is None:
            done = resolve(draft, freezer)
            freezer.resolved[id(draft)] = done
        return done

    return resolved


@_once
def resolve_list(draft: Any, freezer: Freezer) -> Any:
    """The FrozenList of a list draft; its base itself when nothing has changed."""
    node = draft.meta
    base, shape = node.base, node.shape
    item = shape.item if type(shape) is ListShape else shape
    if node.moved:
        frozen = freeze_list(shape, item, draft, freezer)
        return base if len(frozen) == len(base) and _same(base, frozen, freezer) else frozen
    freezer.enter(draft)
    work: list[Any] = list.__getitem__(draft, slice(None))
    size = len(base)
    changed = len(work) != size
    i = 0
    try:
        for i in sorted(node.touched):
            if i < size:
                held = item.freeze(work[i], freezer)
                old = list.__getitem__(base, i)
                work[i] = old if _same(old, held, freezer) else held
                changed = changed or work[i] is not old
        for i in range(size, len(work)):
            work[i] = item.freeze(work[i], freezer)
    except StateValueError as error:
        raise error.under(i) from None
    freezer.leave(draft)
    if not changed:
        return base
    frozen = FrozenList(work)
    frozen.meta = shape
    freezer.hints[id(frozen)] = node
    return frozen


@_once
def resolve_dict(draft: Any, freezer: Freezer) -> Any:
    """The FrozenDict of a dict draft; its base itself when nothing has changed."""
    node = draft.meta
    base, shape = node.base, node.shape
    typed = type(shape) is DictShape
    value_shape = shape.value if typed else shape
    if node.moved or not all(type(key) is str for key in node.touched):
        frozen = freeze_dict(shape, shape.key if typed else None, value_shape, draft, freezer)
        return base if len(frozen) == len(base) and _same(base, frozen, freezer) else frozen
    freezer.enter(draft)
    work = FrozenDict(dict.items(draft))
    work.meta = shape
    changed = len(work) != len(base)
    key: Any = ""
    try:
        for key in node.touched:
            held = value_shape.freeze(work[key], freezer)
            if key in base:
                old = dict.__getitem__(base, key)
                held = old if _same(old, held, freezer) else held
                changed = changed or held is not old
            elif typed:
                shape.key.freeze(key, freezer)
            elif not key.isascii():
                shape.freeze(key, freezer)
            dict.__setitem__(work, key, held)
    except StateValueError as error:
        raise error.under(key if key.isprintable() else repr(key)) from None
    freezer.leave(draft)
    if not changed:
        return base
    freezer.hints[id(work)] = node
    return work


@_once
def resolve_model(draft: Any, freezer: Freezer) -> Any:
    """The frozen model of a model draft; its base itself when nothing has changed."""
    node = draft._refold_node
    base, cls = node.base, node.shape
    freezer.enter(draft)
    values = dict(draft.__dict__)
    if base is None:
        made = assemble(cls, values, values.keys(), freezer)
        freezer.leave(draft)
        return made
    old_values = base.__dict__
    changed = False
    name = ""
    try:
        for name in node.touched:
            held = cls.__refold_shapes__[name].freeze(values[name], freezer)
            old = old_values[name]
            if _same(old, held, freezer):
                values[name] = old
            else:
                values[name] = held
                changed = True
    except StateValueError as error:
        raise error.under(name) from None
    freezer.leave(draft)
    if not changed:
        return base
    made = assemble(cls, values, (), freezer)
    if not cls.__refold_revalidates__:
        freezer.hints[id(made)] = node
    return made
