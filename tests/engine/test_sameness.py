"""Comparing a growing state with a growing document gives what comparing all of both would give."""

from functools import partial
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from refold import StateModel, StateSchema
from refold.engine.commit import fold_step
from refold.engine.sameness import Sameness
from refold.traces import patched


class Item(StateModel):
    name: str = ""
    tags: list[str] = []


class Grown(StateSchema):
    items: list[Item] = []
    members: dict[str, Any] = {}
    numbers: dict[int, list[int]] = {}


TEXT = st.text("ab~/", max_size=2)
CHANGE = st.tuples(
    st.sampled_from(["append", "rename", "tag", "member", "number", "pop", "reorder"]), st.integers(0, 3), TEXT
)


def change(state: Any, changes: list[tuple[str, int, str]]) -> None:
    for kind, n, text in changes:
        if kind == "append":
            state.items.append(Item(name=text))
        elif kind == "rename" and state.items:
            state.items[n % len(state.items)].name = text
        elif kind == "tag" and state.items:
            state.items[n % len(state.items)].tags.append(text)
        elif kind == "member":
            state.members[text] = [n, {"deep": text}, float(n)]
        elif kind == "number":
            state.numbers.setdefault(n, []).append(n)
        elif kind == "pop" and state.items:
            state.items.pop(n % len(state.items))
        elif kind == "reorder" and state.members:
            first = next(iter(state.members))
            state.members[first] = state.members.pop(first)


@given(st.lists(st.tuples(st.lists(CHANGE, max_size=3), st.lists(CHANGE, max_size=1), st.booleans()), max_size=8))
def test_a_growing_state_is_compared_with_a_growing_document(script: list[Any]) -> None:
    """Mostly the two go the same way; now and then one of them does something else, or both are read anew."""
    state: StateSchema = Grown()
    other: StateSchema = state
    document: Any = state.to_dict()
    sameness = Sameness()
    for both, alone, anew in script:
        state = fold_step(state, partial(change, changes=[*both, *alone]), {})[0]
        other, patch, _ = fold_step(other, partial(change, changes=both), {})
        document = patched(document, orjson.loads(orjson.dumps(patch)))
        if anew:
            state, document = Grown.from_dict(state.to_dict()), orjson.loads(orjson.dumps(document))
        plain = state.to_dict()
        for name in ("items", "members", "numbers"):
            expected = orjson.dumps(plain[name]) == orjson.dumps(document[name])
            assert sameness.same(getattr(state, name), document[name], f"/{name}") is expected
        assert sameness.same(state, document, "") is (orjson.dumps(plain) == orjson.dumps(document))
