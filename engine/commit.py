"""One reduce from draft to commit: the next frozen state, and the JSON Patch that leads to it."""

from collections.abc import Callable
from itertools import islice
from sys import getrecursionlimit
from typing import Any

import orjson

from ..traces.compare import Op, Span, key_token
from .draft import Node, Scope
from .draft_model import draft_model
from .errors import EngineOwnedFieldError, ReduceError, StateValueError
from .expire import expire
from .frozen import FrozenDict, FrozenList
from .json_form import COMPARISON, PLAIN, check_depth, dump
from .passage import MAX_DEPTH, Freezer
from .resolve import resolve_model
from .runs import gaps
from .shape import DRAFT_RESOLVERS, Resolver
from .state import StateSchema, assemble

_DEEP = 50
"""From so many levels on, it is a state's nesting that takes most of the frames."""


def fold_step(
    state: StateSchema, reduce: Callable[[Any], Any], engine_fields: dict[str, Any]
) -> tuple[StateSchema, list[Op]]:
    """Runs `reduce` on a draft of `state` and commits it, with the fields that the engine writes.

    Returns the next state and the patch that leads to it. Raises StateValueError with the path of a bad value,
    ReduceError for a bad return value.
    """
    scope = Scope()
    draft = draft_model(state, scope)
    try:
        return _commit(state, draft, reduce(draft), engine_fields)
    finally:
        expire(scope)


def _commit(
    state: StateSchema, draft: Any, returned: Any, engine_fields: dict[str, Any]
) -> tuple[StateSchema, list[Op]]:
    if returned is None or returned is draft:
        held, was = draft.__dict__, state.__dict__
        for name in type(state).__refold_engine_fields__:
            if held.get(name) is not was[name]:  # written past the draft
                raise EngineOwnedFieldError(name)
        held.update(engine_fields)
        draft._refold_node.touched.update(engine_fields)
        freezer = Freezer(consuming=True)
        new = _resolved(draft, freezer)
    else:
        freezer = Freezer()
        new = _returned_state(state, returned, freezer)
        if _resolved(draft, Freezer()) is not state:
            raise ReduceError("reduce() changed the draft and returned another state; do one or the other")
        kept = {name: state.__dict__[name] for name in type(state).__refold_engine_fields__}
        new = assemble(type(state), {**new.__dict__, **kept, **engine_fields}, engine_fields)
    if new is state:
        return state, []
    ops: list[Op] = []
    _emit(state, new, "", freezer, ops)
    return new, plain_ops(ops)


def _resolved(draft: Any, freezer: Freezer, resolve: Resolver = resolve_model) -> Any:
    """The draft's frozen value. Models in models take five of Python's frames a level, of which it may have too few."""
    try:
        return resolve(draft, None, freezer)
    except RecursionError:
        if len(freezer.stack) < _DEEP:  # what is deep is the caller, or a validator
            raise
        raise StateValueError(
            f"nested {len(freezer.stack)} levels deep, too deep for Python's recursion limit of {getrecursionlimit()}; "
            f"where sys.setrecursionlimit raises it, states may nest {MAX_DEPTH} levels"
        ) from None


def _returned_state(state: StateSchema, returned: Any, freezer: Freezer) -> Any:
    if isinstance(returned, StateSchema) and (resolver := DRAFT_RESOLVERS.get(type(returned))):
        returned = _resolved(returned, freezer, resolver)
    if type(returned) is not type(state):
        raise ReduceError(
            f"reduce() returned {type(returned).__name__}; it must return None (for the draft), the draft, "
            f"or another {type(state).__name__}"
        )
    return returned


def _emit(old: Any, new: Any, path: str, freezer: Freezer, ops: list[Op]) -> None:
    """Adds the operations from `old` to another `new`, guided by what the draft that became `new` knows of itself."""
    kind = type(new)
    if kind in PLAIN:
        ops.append({"op": "replace", "path": path, "value": new})
        return
    node = freezer.hints.get(id(new))
    if node is None or node.base is not old:
        ops.extend(COMPARISON.make_patch(old, new, path))
    elif kind is FrozenList:
        mine: list[Op] = []
        _emit_list(node, old, new, path, freezer, mine)
        ops.extend(COMPARISON.shortest(mine, new, path) if len(mine) > 4 else mine)
    elif kind is FrozenDict:
        _emit_dict(node, old, new, path, freezer, ops)
    else:
        was, now = old.__dict__, new.__dict__
        for name in node.touched:
            value = now[name]
            if type(value) in PLAIN:
                if was[name] is not value:
                    ops.append({"op": "replace", "path": f"{path}/{name}", "value": value})
            elif was[name] is not value:
                _emit(was[name], value, f"{path}/{name}", freezer, ops)


def _emit_list(node: Node, old: Any, new: Any, path: str, freezer: Freezer, ops: list[Op]) -> None:
    """Items changed in their place first, while they have their old indices; then what moved, the last place first."""
    size = len(old)
    if node.moved is None:
        for i in node.touched:
            if old[i] is not new[i]:
                _emit(old[i], new[i], f"{path}/{i}", freezer, ops)
        end = f"{path}/-"
        for value in new[size:]:
            ops.append({"op": "add", "path": end, "value": value})
        return
    for at, base, count in node.moved:
        for i in node.touched:
            if base <= i < base + count and old[i] is not new[at + i - base]:
                _emit(old[i], new[at + i - base], f"{path}/{i}", freezer, ops)
    for gap in reversed(gaps(node.moved, size, len(new))):
        COMPARISON.compare_span(old, new, Span(*gap), path, ops)


def _emit_dict(node: Node, old: Any, new: Any, path: str, freezer: Freezer, ops: list[Op]) -> None:
    """Removed members first; what was removed and set again goes to the end, as it does in a dict."""
    removed: Any = node.moved or ()
    for key in removed:
        ops.append({"op": "remove", "path": f"{path}/{key_token(key)}"})
    for key in node.touched:
        if key in old and key not in removed:
            was, now = old[key], new[key]
            if was is not now:
                _emit(was, now, f"{path}/{key_token(key)}", freezer, ops)
    for key in islice(new, len(old) - len(removed), None):
        ops.append({"op": "add", "path": f"{path}/{key_token(key)}", "value": new[key]})


def plain_ops(ops: list[Op]) -> list[Op]:
    """The operations with values that any JSON writer takes: all but scalars become finished JSON.

    Raises StateValueError where a value would make the document nest too deep to be read again.
    """
    for op in ops:
        value = op.get("value")
        if type(value) not in PLAIN:
            data = dump(value)
            check_depth(data, op["path"])
            op["value"] = orjson.Fragment(data)
    return ops


__all__ = ["StateValueError", "fold_step", "plain_ops"]
