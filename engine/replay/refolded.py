"""States computed from recorded patches, which share unchanged parts with the state before.

Reading a state from its JSON would copy all of it. Here each patch is replayed on a draft, so that parts which the
patch does not touch stay the same objects.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ...traces import split_pointer
from ..purity import NOWHERE, reset_frame, set_frame
from ..state.commit import fold_step
from ..state.model import StateSchema

Op = Mapping[str, Any]


def refolded(state: StateSchema, patches: Iterable[list[Op]]) -> StateSchema | None:
    """Apply patches to a state; return None if a draft cannot take them (a date, say, is a string in a patch).

    To check the result, the patch that the draft has made must equal the recorded one.
    """
    token = set_frame(NOWHERE)
    try:
        for patch in patches:
            state = _step(state, patch)
    except Exception:  # noqa: BLE001 - whatever it is, the state can be read from its document instead
        return None
    finally:
        reset_frame(token)
    return state


def _step(state: StateSchema, patch: list[Op]) -> StateSchema:
    written: dict[str, Any] = {}
    changed: list[Op] = []
    for op in patch:
        name = op["path"][1:]
        if name in type(state).__refold_engine_fields__:
            written[name] = op["value"]
        else:
            changed.append(op)

    def reduce(draft: Any) -> None:
        for op in changed:
            _apply(draft, split_pointer(op["path"]), op)

    after, made = fold_step(state, reduce, written)
    if orjson.dumps(made) != orjson.dumps(patch):
        raise ValueError("the draft came out otherwise")
    return after


def _apply(node: Any, tokens: list[str], op: Op) -> None:
    for token in tokens[:-1]:
        node = _member(node, token)
    kind, last = op["op"], tokens[-1]
    if isinstance(node, list):
        if kind == "add":
            node.append(op["value"]) if last == "-" else node.insert(int(last), op["value"])
        elif kind == "replace":
            node[int(last)] = op["value"]
        else:
            del node[int(last)]
    elif isinstance(node, dict):
        if kind == "remove":
            del node[last]
        else:
            node[last] = op["value"]
    else:
        setattr(node, last, op["value"])


def _member(node: Any, token: str) -> Any:
    if isinstance(node, list):
        return node[int(token)]
    return node[token] if isinstance(node, dict) else getattr(node, token)
