"""One reduce from draft to commit: the next frozen state, and the JSON Patch that leads to it."""

from collections.abc import Callable
from itertools import islice
from typing import Any, NoReturn

import orjson

from ..traces.compare import Op, key_token
from .draft import DraftDict, DraftList, Node, Scope
from .draft_model import draft_model
from .errors import DraftExpiredError, ReduceError, StateValueError
from .resolve import COMPARISON
from .shape import DRAFT_RESOLVERS, Freezer
from .state import StateSchema, assemble, dump


def fold_step(
    state: StateSchema, reduce: Callable[[Any], Any], engine_fields: dict[str, Any]
) -> tuple[StateSchema, list[Op]]:
    """Runs `reduce` on a draft of `state` and commits it, with the fields that the engine writes.

    Returns the next state and the patch from the old one. When reduce raises, or what it made is refused, `state` is as
    it was. Raises StateValueError with the path of a bad value, ReduceError for a bad return value.
    """
    scope = Scope()
    draft = draft_model(state, scope)
    try:
        returned = reduce(draft)
        return _commit(state, draft, returned, engine_fields)
    finally:
        _expire(scope)


def _commit(
    state: StateSchema, draft: Any, returned: Any, engine_fields: dict[str, Any]
) -> tuple[StateSchema, list[Op]]:
    freezer = Freezer()
    resolve = DRAFT_RESOLVERS[type(draft)]
    if returned is None or returned is draft:
        draft.__dict__.update(engine_fields)
        draft._refold_node.touched.update(engine_fields)
        new = resolve(draft, freezer)
    else:
        new = _returned_state(state, returned, freezer)
        if resolve(draft, Freezer()) is not state:
            raise ReduceError("reduce() changed the draft and returned another state; do one or the other")
        kept = {name: state.__dict__[name] for name in type(state).__refold_engine_fields__}
        new = assemble(type(state), {**new.__dict__, **kept, **engine_fields}, tuple(engine_fields), freezer)
    if new is state:
        return state, []
    ops: list[Op] = []
    _emit(state, new, "", freezer.hints, ops)
    return new, plain_ops(ops)


def _returned_state(state: StateSchema, returned: Any, freezer: Freezer) -> Any:
    resolver = DRAFT_RESOLVERS.get(type(returned))
    if resolver is not None:
        returned = resolver(returned, freezer)
    if type(returned) is not type(state):
        raise ReduceError(
            f"reduce() returned {type(returned).__name__}; it must return None (for the draft), the draft, "
            f"or another {type(state).__name__}"
        )
    return returned


def _emit(old: Any, new: Any, path: str, hints: dict[int, Node], ops: list[Op]) -> None:
    """Adds the operations from `old` to `new`, guided by what the draft that became `new` knows to be touched."""
    if old is new:
        return
    node = hints.get(id(new))
    if node is None or node.base is not old:
        ops.extend(COMPARISON.make_patch(old, new, path))
    elif isinstance(new, list):
        size = len(old)
        for i in sorted(node.touched):
            if i < size:
                _emit(old[i], new[i], f"{path}/{i}", hints, ops)
        for value in new[size:]:
            ops.append({"op": "add", "path": f"{path}/-", "value": value})
    elif isinstance(new, dict):
        for key in old if len(node.touched) > 8 else sorted(node.touched):
            if key in node.touched and key in old:
                _emit(old[key], new[key], f"{path}/{key_token(key)}", hints, ops)
        for key in islice(new, len(old), None):
            ops.append({"op": "add", "path": f"{path}/{key_token(key)}", "value": new[key]})
    else:
        was, now = old.__dict__, new.__dict__
        for name in now:
            if name in node.touched:
                _emit(was[name], now[name], f"{path}/{name}", hints, ops)


def plain_ops(ops: list[Op]) -> list[Op]:
    """The operations with values that any JSON writer takes: those with non-text keys are turned into documents."""
    for op in ops:
        value = op.get("value")
        if type(value) not in (str, int, float, bool, type(None)):
            op["value"] = orjson.Fragment(dump(value))
    return ops


class _Expired:
    """What a draft becomes once its reduce has ended: whatever is asked of it, it says so."""


def _expired_class(base: type) -> type:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        shape = self.meta.shape
        raise DraftExpiredError(getattr(shape, "label", "a state"))

    names = [n for n in dir(base) if callable(getattr(base, n)) and n not in _LEFT_ALONE]
    return type(f"Expired{base.__name__}", (base.__mro__[1],), {"__slots__": ("meta",), **dict.fromkeys(names, refuse)})


_LEFT_ALONE = frozenset(
    "__class__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ __setattr__ __delattr__ __dir__ "
    "__repr__ __str__ __format__ __sizeof__ __hash__ __class_getitem__ __doc__ __getstate__".split()
)
_EXPIRED_LIST = _expired_class(DraftList)
_EXPIRED_DICT = _expired_class(DraftDict)


def _expire(scope: Scope) -> None:
    for draft in scope.drafts:
        kind = type(draft)
        if kind is DraftList:
            list.clear(draft)
            draft.__class__ = _EXPIRED_LIST
        elif kind is DraftDict:
            dict.clear(draft)
            draft.__class__ = _EXPIRED_DICT
        else:
            draft.__dict__.clear()


__all__ = ["StateValueError", "fold_step", "plain_ops"]
