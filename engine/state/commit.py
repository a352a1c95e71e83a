"""One reduce from draft to commit: the next frozen state, and the JSON Patch that leads to it."""

from collections.abc import Callable
from sys import getrecursionlimit
from typing import Any

import orjson

from ...traces.json_patch.make import Op
from ..errors import EngineOwnedFieldError, ReduceError, StateValueError
from .containers import DRAFT_RESOLVERS
from .draft import Scope
from .draft_model import draft_model
from .finalize import settle_model
from .freezer import MAX_DEPTH, Freezer
from .model import StateSchema, assemble
from .revoke import expire
from .serialization import COMPARISON, PLAIN, SHALLOW, check_depth, dump

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
    ops: list[Op] = []
    if returned is None or returned is draft:
        held, was = draft.__dict__, state.__dict__
        for name in type(state).__refold_engine_fields__:
            if held.get(name) is not was[name]:  # written past the draft
                raise EngineOwnedFieldError(name)
        held.update(engine_fields)
        node = draft._refold_node
        node.touched.update(engine_fields)
        new = _settled(draft, Freezer(consuming=True), ops)
    else:
        new = _returned_state(state, returned)
        if _settled(draft, Freezer(), []) is not state:
            raise ReduceError("reduce() changed the draft and returned another state; do one or the other")
        kept = {name: state.__dict__[name] for name in type(state).__refold_engine_fields__}
        new = assemble(type(state), {**new.__dict__, **kept, **engine_fields}, engine_fields)
        ops = COMPARISON.make_patch(state, new)
    return new, plain_ops(ops)


def _settled(draft: Any, freezer: Freezer, ops: list[Op]) -> Any:
    """The draft's frozen value. Models in models take Python's frames a level, of which it may have too few."""
    try:
        return settle_model(draft, draft._refold_node, freezer, "", ops)
    except RecursionError:
        if len(freezer.stack) < _DEEP:  # what is deep is the caller, or a validator
            raise
        raise StateValueError(
            f"nested {len(freezer.stack)} levels deep, too deep for Python's recursion limit of {getrecursionlimit()}; "
            f"where sys.setrecursionlimit raises it, states may nest {MAX_DEPTH} levels"
        ) from None


def _returned_state(state: StateSchema, returned: Any) -> Any:
    if isinstance(returned, StateSchema) and type(returned) in DRAFT_RESOLVERS:
        returned = _settled(returned, Freezer(), [])
    if type(returned) is not type(state):
        raise ReduceError(
            f"reduce() returned {type(returned).__name__}; it must return None (for the draft), the draft, "
            f"or another {type(state).__name__}"
        )
    return returned


def plain_ops(ops: list[Op]) -> list[Op]:
    """The operations with values that any JSON writer takes: all but scalars become finished JSON.

    Raises StateValueError where a value would make the document nest too deep to be read again.
    """
    for op in ops:
        if type(value := op.get("value")) not in PLAIN:
            data = dump(value)
            if len(data) + 2 * len(op["path"]) > SHALLOW:
                check_depth(data, op["path"])
            op["value"] = orjson.Fragment(data)
    return ops


__all__ = ["StateValueError", "fold_step", "plain_ops"]
