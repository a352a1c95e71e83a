"""Patches: ours against jsonpatch's, and what must be refused."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.errors import PatchError
from refold.traces import apply_patch, changes_of
from refold.traces.json_patch.apply import copy_json, join_pointer, same_json, split_pointer
from refold.traces.json_patch.share import patched
from refold.traces.states.fold import fold_patches

KEYS = st.sampled_from(["a", "b", "", "~", "/", "~1", "0", "1", "-", "é", "\u2028"])
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.0, 2.5, "x", "", "\u2028"])
DOCS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
ROOTS = st.dictionaries(KEYS, DOCS, max_size=5)


def dumped(value: Any) -> str:
    """Shows types and key order."""
    return repr(value)


def pointers(doc: Any, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [prefix]
    if isinstance(doc, dict):
        for key, value in doc.items():
            found += pointers(value, (*prefix, key))
    if isinstance(doc, list):
        for index, value in enumerate(doc):
            found += pointers(value, (*prefix, str(index)))
    return found


@st.composite
def documents_and_patches(draw: st.DrawFn) -> tuple[Any, list[dict[str, Any]]]:
    doc = draw(ROOTS)
    now, ops = copy_json(doc), []
    for _ in range(draw(st.integers(1, 5))):
        places = pointers(now)
        kind = draw(st.sampled_from(["add", "replace", "remove", "move", "copy", "test"]))
        path = draw(st.sampled_from(places))
        op: dict[str, Any] = {"op": kind, "path": join_pointer(path)}
        if kind in ("add", "move", "copy"):
            extra = draw(st.sampled_from(["-", "0", "1", "a", "~", "", "01", "9"]) | KEYS)
            op["path"] = join_pointer((*path, extra)) if draw(st.booleans()) else join_pointer(path)
        if kind in ("add", "replace"):
            op["value"] = draw(DOCS)
        if kind == "test":
            op["value"] = draw(DOCS)
        if kind in ("move", "copy"):
            op["from"] = join_pointer(draw(st.sampled_from(places)))
        ops.append(op)
        try:
            now = jsonpatch.apply_patch(now, [op])
        except Exception:
            break
        if not isinstance(now, (dict, list)):
            break
    return doc, ops


def plain(ops: list[dict[str, Any]]) -> bool:
    """Leave out where jsonpatch is laxer or stricter than RFC 6902 on purpose or by accident (see the tests below)."""
    return all(
        op["op"] != "test" and not (op["op"] in ("remove", "move") and "" in (op["path"], op.get("from"))) for op in ops
    )


@given(documents_and_patches())
def test_ours_is_jsonpatchs(case: tuple[Any, list[dict[str, Any]]]) -> None:
    doc, ops = case
    if not plain(ops):
        return
    before = dumped(doc)
    try:
        expected = jsonpatch.apply_patch(copy_json(doc), copy_json(ops))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        expected = PatchError
    mine = copy_json(doc)
    try:
        result = apply_patch(mine, ops)
    except PatchError:
        result = PatchError
        assert dumped(mine) == before
    if expected is PatchError:
        return  # jsonpatch refuses more: adding to a text, for instance, fails in it with a TypeError
    assert dumped(result) == dumped(expected)


@given(documents_and_patches())
def test_every_way_of_applying_agrees(case: tuple[Any, list[dict[str, Any]]]) -> None:
    doc, ops = case
    before, patch = dumped(doc), dumped(ops)
    try:
        expected = dumped(apply_patch(copy_json(doc), ops))
    except PatchError:
        for way in (patched, lambda d, o: fold_patches(copy_json(d), [o])):
            with pytest.raises(PatchError):
                way(doc, copy_json(ops))
        assert dumped(doc) == before
        return
    shared = patched(doc, ops)
    assert dumped(shared) == expected
    assert dumped(doc) == before
    changes = changes_of(doc, ops)
    assert dumped(doc) == before
    assert dumped(fold_patches(copy_json(doc), [copy_json(ops)])) == expected
    assert dumped(ops) == patch
    again = copy_json(doc)
    for change in changes:  # what changes_of says is itself a patch
        again = apply_patch(again, [{"op": change.op, "path": change.path, "value": change.new}])
    assert dumped(again) == expected


def test_the_patch_and_the_document_share_nothing() -> None:
    ops: list[dict[str, Any]] = [{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/-", "value": 1}]
    doc: dict[str, Any] = {}
    apply_patch(doc, ops)
    assert doc == {"a": [1]}
    assert ops[0]["value"] == []


@pytest.mark.parametrize(
    ("doc", "op", "says"),
    [
        ({"a": [1]}, {"op": "add", "path": "/a/01", "value": 0}, "list index"),
        ({"a": [1]}, {"op": "add", "path": "/a/\u0661", "value": 0}, "list index"),
        ({"a": [1]}, {"op": "add", "path": "/a/2", "value": 0}, "end"),
        ({"a": [1]}, {"op": "replace", "path": "/a/-", "value": 0}, "list index"),
        ({"a": [1]}, {"op": "replace", "path": "/a/1", "value": 0}, "end"),
        ({"a": [1]}, {"op": "remove", "path": "/a/-1"}, "list index"),
        ({"a": 1}, {"op": "replace", "path": "/b", "value": 0}, "no member 'b'"),
        ({"a": 1}, {"op": "remove", "path": "/b"}, "no member 'b'"),
        ({"a": 1}, {"op": "remove", "path": ""}, "whole document"),
        ({"a": 1}, {"op": "add", "path": "/a/b", "value": 0}, "neither object nor list"),
        ({"a": 1}, {"op": "add", "path": "a", "value": 0}, "begin with"),
        ({"a": 1}, {"op": "add", "path": "/~2", "value": 0}, "'~'"),
        ({"a": 1}, {"op": "add", "path": "/b"}, "member 'value'"),
        ({"a": 1}, {"op": "put", "path": "/b", "value": 0}, "'put'"),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}, "into itself"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "'test'"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1.0}, "'test'"),
    ],
)
def test_bad_operations_name_themselves(doc: Any, op: dict[str, Any], says: str) -> None:
    fine = {"op": "add", "path": "/ok", "value": 1}
    with pytest.raises(PatchError) as caught:
        apply_patch(doc, [fine, op])
    assert caught.value.op == 1
    assert says in str(caught.value)
    assert "ok" not in doc
    with pytest.raises(PatchError):
        apply_patch(doc, [fine, op], atomic=False)
    assert doc["ok"] == 1


def test_the_root_can_be_replaced_and_keys_keep_their_place() -> None:
    assert apply_patch({"a": 1}, [{"op": "replace", "path": "", "value": [1]}]) == [1]
    doc = {"a": 1, "b": 2}
    apply_patch(doc, [{"op": "add", "path": "/a", "value": 3}])
    assert list(doc.items()) == [("a", 3), ("b", 2)]
    apply_patch(doc, [{"op": "move", "from": "/a", "path": "/c"}, {"op": "copy", "from": "/c", "path": "/d"}])
    assert list(doc.items()) == [("b", 2), ("c", 3), ("d", 3)]


@given(st.lists(KEYS))
def test_pointers_come_back(tokens: list[str]) -> None:
    assert split_pointer(join_pointer(tokens)) == tokens


def test_equality_is_typed() -> None:
    assert not same_json(1, True)
    assert not same_json([1], [1.0])
    assert same_json({"a": [1, None], "b": "x"}, {"b": "x", "a": [1, None]})
    assert not same_json({"a": 1}, {"b": 1})
