"""Drafts behave as the plain Python they stand for: the same operations on both, compared after each, committed."""

# ruff: noqa: RUF005 - the spellings are what is tested

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonpatch
import orjson
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from refold.engine.commit import fold_step
from refold.engine.errors import FrozenStateError
from refold.engine.state import StateModel, StateSchema, dump
from refold.traces.patch import apply_patch


class Note(StateModel):
    text: str = ""
    tags: list[str] = []
    extra: dict[str, Any] = {}


class Board(StateSchema):
    items: list[Any] = []
    table: dict[str, Any] = {}
    notes: list[Note] = []
    named: dict[str, Note] = {}
    numbers: dict[int, list[int]] = {}
    note: Note = Note()
    title: str | None = None


class Plain:
    """A mutable object with the fields of a model."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)


def plain_note(doc: dict[str, Any]) -> Plain:
    return Plain(copy.deepcopy(doc))


def plain_board(doc: dict[str, Any]) -> Any:
    board: Any = Plain(copy.deepcopy(doc))
    board.notes = [plain_note(n) for n in doc["notes"]]
    board.named = {k: plain_note(n) for k, n in doc["named"].items()}
    board.numbers = {int(k): v for k, v in copy.deepcopy(doc["numbers"]).items()}
    board.note = plain_note(doc["note"])
    return board


def document(value: Any) -> Any:
    if isinstance(value, Plain):
        return document(value.__dict__)
    if isinstance(value, dict):
        return {str(k): document(v) for k, v in value.items()}
    return [document(v) for v in value] if isinstance(value, list) else value


Path = tuple[Any, ...]


def places(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """All containers below a plain value, with their paths."""
    found = [(path, value)] if path else []
    members: Any = ()
    if isinstance(value, Plain):
        members = value.__dict__.items()
    elif isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, each in members:
        if isinstance(each, Plain | dict | list) and len(path) < 6 and key not in ("metadata", "metrics"):
            found += places(each, (*path, key))
    return found


def reach(root: Any, path: Path) -> Any:
    for token in path:
        root = root[token] if isinstance(root, list | dict) else getattr(root, token)
    return root


def holds(value: Any, sought: Any) -> bool:
    if value is sought:
        return True
    members = value.__dict__ if isinstance(value, Plain) else value
    each = members.values() if isinstance(members, dict) else members if isinstance(members, list) else ()
    return any(holds(v, sought) for v in each)


def kind_of(path: Path) -> str:
    """What the container at this path holds: any, note, text or number."""
    if path[0] in ("notes", "named") and len(path) == 1:
        return "note"
    if path[0] == "numbers":
        return "lists" if len(path) == 1 else "number"
    if "tags" in path[-1:] and path[0] in ("note", "notes", "named"):
        return "text"
    return "any"


def by_dump(value: Any) -> str:
    return json.dumps(document(value) if isinstance(value, Plain) else orjson.loads(dump(value)), sort_keys=True)


def set_slice(c: list[Any], i: int, j: int, k: int, vs: list[Any]) -> None:
    if k in (1, None):
        c[i:j] = vs
    else:
        c[i:j:k] = [vs[0]] * len(c[i:j:k])


def edit_each(c: Any) -> None:
    for each in c.values() if isinstance(c, dict) else c:
        if isinstance(each, dict):
            each["seen"] = True
        elif isinstance(each, list) and each and type(each[0]) is int:
            each[0] = 0


def move(c: list[Any], i: int) -> None:
    c.append(c.pop(i))


def readd(c: dict[Any, Any]) -> None:
    key = next(iter(c))
    c[key] = c.pop(key)


def reorder(c: dict[Any, Any]) -> None:
    pairs = list(c.items())[::-1]
    c.clear()
    c.update(pairs)


def iadd(c: list[Any], vs: list[Any]) -> None:
    c += vs


def imul(c: list[Any], n: int) -> None:
    c *= n


def ior(c: dict[Any, Any], other: Any) -> None:
    c |= other


# Each works on a draft and on a plain value alike: container, index, index, step, values, key.
Op = Callable[[Any, int, int, int, list[Any], Any], Any]
LIST_OPS: dict[str, Op] = {
    "set": lambda c, i, j, k, vs, key: c.__setitem__(i, vs[0]),
    "del": lambda c, i, j, k, vs, key: c.__delitem__(i),
    "get": lambda c, i, j, k, vs, key: c[i] is c[i],
    "append": lambda c, i, j, k, vs, key: c.append(vs[0]),
    "extend": lambda c, i, j, k, vs, key: c.extend(vs),
    "extend self": lambda c, i, j, k, vs, key: c.extend(c[:2]),
    "insert": lambda c, i, j, k, vs, key: c.insert(i, vs[0]),
    "pop": lambda c, i, j, k, vs, key: c.pop(i) and None,
    "pop last": lambda c, i, j, k, vs, key: c.pop() and None,
    "remove": lambda c, i, j, k, vs, key: c.remove(c[i]),
    "clear": lambda c, i, j, k, vs, key: c.clear(),
    "sort": lambda c, i, j, k, vs, key: c.sort(key=by_dump, reverse=bool(j % 2)),
    "reverse": lambda c, i, j, k, vs, key: c.reverse(),
    "set slice": lambda c, i, j, k, vs, key: set_slice(c, i, j, k, vs),
    "del slice": lambda c, i, j, k, vs, key: c.__delitem__(slice(i, j, k)),
    "keep slice": lambda c, i, j, k, vs, key: c.__setitem__(slice(None), c[i:j:k]),
    "trim": lambda c, i, j, k, vs, key: c.__delitem__(slice(0, 1)),
    "iadd": lambda c, i, j, k, vs, key: iadd(c, vs),
    "imul": lambda c, i, j, k, vs, key: imul(c, j % 3),
    "move": lambda c, i, j, k, vs, key: move(c, i),
    "swap": lambda c, i, j, k, vs, key: c.__setitem__(slice(0, 2), list(reversed(c[0:2]))),
    "edit each": lambda c, i, j, k, vs, key: edit_each(c),
    "again": lambda c, i, j, k, vs, key: c.append(c[i]),
    "tail": lambda c, i, j, k, vs, key: [by_dump(v) for v in reversed(c)] + [len(c), bool(c)],
    "add": lambda c, i, j, k, vs, key: [by_dump(v) for v in [*c, *(c + c), *([] + c), *(c * 2)]],
    "find": lambda c, i, j, k, vs, key: (c.index(c[i]), c.count(c[i]), c[i] in c, c == c[:], c == [1]),
    "deep": lambda c, i, j, k, vs, key: c.extend(copy.deepcopy(c[i:j])),
    "shallow": lambda c, i, j, k, vs, key: c.extend(copy.copy(c)[:1]),
}
DICT_OPS: dict[str, Op] = {
    "set": lambda c, i, j, k, vs, key: c.__setitem__(key, vs[0]),
    "del": lambda c, i, j, k, vs, key: c.__delitem__(key),
    "get": lambda c, i, j, k, vs, key: (c.get(key) is c.get(key), key in c, len(c)),
    "pop": lambda c, i, j, k, vs, key: c.pop(key) and None,
    "pop default": lambda c, i, j, k, vs, key: c.pop(key, None) and None,
    "popitem": lambda c, i, j, k, vs, key: c.popitem() and None,
    "setdefault": lambda c, i, j, k, vs, key: c.setdefault(key, vs[0]) is c[key],
    "update": lambda c, i, j, k, vs, key: c.update({key: vs[0]}),
    "ior": lambda c, i, j, k, vs, key: ior(c, {key: vs[-1]}),
    "clear": lambda c, i, j, k, vs, key: c.clear(),
    "readd": lambda c, i, j, k, vs, key: readd(c),
    "reorder": lambda c, i, j, k, vs, key: reorder(c),
    "edit each": lambda c, i, j, k, vs, key: edit_each(c),
    "or": lambda c, i, j, k, vs, key: [[*(c | {key: 1})], [*({key: 1} | c)], [*reversed(c)], [*c.items()][:0]],
    "views": lambda c, i, j, k, vs, key: (list(c), list(c.keys()), len(c.values()), [by_dump(v) for v in c.values()]),
    "copies": lambda c, i, j, k, vs, key: (c == dict(c), c == {**c}, c == copy.copy(c), c == c.copy()),
    "again": lambda c, i, j, k, vs, key: c.__setitem__(key, c[next(iter(c))]),
    "deep": lambda c, i, j, k, vs, key: c.__setitem__(key, copy.deepcopy(c[next(iter(c))])),
}
NOTE_OPS: dict[str, Op] = {
    "text": lambda c, i, j, k, vs, key: setattr(c, "text", str(key)),
    "more": lambda c, i, j, k, vs, key: setattr(c, "text", c.text + "!"),
    "tags": lambda c, i, j, k, vs, key: setattr(c, "tags", c.tags + ["t"]),
    "same": lambda c, i, j, k, vs, key: setattr(c, "extra", c.extra),
    "new": lambda c, i, j, k, vs, key: setattr(c, "extra", {"n": i}),
}
BOARD_OPS: dict[str, Op] = {
    "slice": lambda c, i, j, k, vs, key: setattr(c, "notes", c.notes[1:]),
    "list": lambda c, i, j, k, vs, key: setattr(c, "items", list(c.items)),
    "rebuilt": lambda c, i, j, k, vs, key: setattr(c, "table", {**c.table, "z": 1}),
    "title": lambda c, i, j, k, vs, key: setattr(c, "title", None if i < 0 else str(key)),
    "note": lambda c, i, j, k, vs, key: setattr(c, "note", copy.copy(c.note)),
    "deep note": lambda c, i, j, k, vs, key: setattr(c, "note", copy.deepcopy(c.note)),
    "shared note": lambda c, i, j, k, vs, key: c.notes.append(c.note),
    "moved note": lambda c, i, j, k, vs, key: setattr(c, "note", c.notes.pop()),
    "named note": lambda c, i, j, k, vs, key: c.named.__setitem__("moved", c.notes.pop(0)),
    "sorted": lambda c, i, j, k, vs, key: setattr(c, "notes", sorted(c.notes, key=lambda n: n.text)),
    "extra": lambda c, i, j, k, vs, key: setattr(c, "table", c.note.extra),
    "cross": lambda c, i, j, k, vs, key: c.items.append(list(c.note.tags)),
    "metadata": lambda c, i, j, k, vs, key: c.metadata.setdefault("log", []).append(key),
}

scalars = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 2.5, "", "a", "~/", "é\u2028"])
)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=2), v, max_size=3))
keys = st.sampled_from(["", "a", "b", "~1", "x/y", "é"])
small = st.integers(-4, 4)


class Drafts(RuleBasedStateMachine):
    """Operations are collected, then run inside one reduce on the draft and on a plain copy."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Board()
        self.pending: list[tuple[Any, ...]] = []

    @rule(where=st.integers(0, 50), name=st.integers(0, 500), i=small, j=small, k=st.sampled_from([1, 1, 1, 2, -1]),
          vs=st.lists(values, min_size=1, max_size=3), key=keys)  # fmt: skip
    def change(self, **what: Any) -> None:
        self.pending.append(("change", what))

    @rule(source=st.integers(0, 50), into=st.integers(0, 50), key=keys)
    def put(self, **what: Any) -> None:
        self.pending.append(("put", what))

    @rule(fill=st.lists(values, max_size=4), tags=st.lists(st.sampled_from("abc"), max_size=3))
    def fill(self, fill: list[Any], tags: list[str]) -> None:
        self.pending.append(("fill", {"fill": fill, "tags": tags}))

    @rule()
    def commit(self) -> None:
        self.run()

    def teardown(self) -> None:
        self.run()

    @invariant()
    def round_trip(self) -> None:
        assert Board.from_dict(self.state.to_dict()) == self.state

    def run(self) -> None:
        old, before = self.state, dump(self.state)
        plain = plain_board(old.to_dict())
        leaked: list[Any] = []

        def reduce(draft: Board) -> None:
            for name, what in self.pending:
                getattr(self, f"do_{name}")(draft, plain, **what)
                assert json.dumps(orjson.loads(dump(draft))) == json.dumps(document(plain)), (name, what)
                assert draft.model_dump(mode="json", warnings=False) == document(plain)
            assert isinstance(draft, Board)
            leaked.append(draft.notes)

        def reduce_alone(draft: Board) -> None:
            other = plain_board(old.to_dict())
            for name, what in self.pending:
                getattr(self, f"do_{name}")(draft, other, **what)

        # The same operations on a copy that nobody else holds, whose lists may be lent, come to the same.
        lent = Board.from_dict(old.to_dict())
        new_of_lent, ops_of_lent, _ = fold_step(lent, reduce_alone, {}, sole=True)
        new, ops, _ = fold_step(old, reduce, {})
        assert dump(new_of_lent) == dump(new)
        patch_of_lent = orjson.loads(orjson.dumps(ops_of_lent))
        assert json.dumps(apply_patch(old.to_dict(), patch_of_lent)) == json.dumps(new.to_dict())
        self.pending = []
        expected = json.dumps(document(plain))
        assert json.dumps(new.to_dict()) == expected
        assert dump(old) == before
        patch = orjson.loads(orjson.dumps(ops))
        assert json.dumps(apply_patch(old.to_dict(), patch)) == expected
        assert json.dumps(jsonpatch.apply_patch(old.to_dict(), patch)) == expected
        assert (new is old) <= (ops == [])
        again, none, _ = fold_step(new, lambda draft: draft if str(draft.notes) + str(draft.table) else None, {})
        assert again is new
        assert none == []
        assert isinstance(new, Board)
        self.state = new

    def do_change(
        self, draft: Any, plain: Any, where: int, name: int, i: int, j: int, k: int, vs: Any, key: Any
    ) -> None:
        found: list[tuple[Path, Any]] = [((), plain), *places(plain)]
        path, target = found[where % len(found)]
        ops = BOARD_OPS if not path else NOTE_OPS
        if isinstance(target, list | dict):
            ops = LIST_OPS if isinstance(target, list) else DICT_OPS
        kind = kind_of(path) if path else "any"
        mine, theirs = copy.deepcopy(vs), copy.deepcopy(vs)
        if kind == "note":
            mine = [Note(text=str(v)) for v in vs]
            theirs = [plain_note(n.to_dict()) for n in mine]
        elif kind in ("text", "number"):
            mine = theirs = [str(v) if kind == "text" else i for v in vs]
        elif kind == "lists":
            key, mine, theirs = len(key), [[i] for _ in vs], [[i] for _ in vs]
        op = ops[sorted(ops)[name % len(ops)]]
        try:
            got = ("gives", op(reach(draft, path), i, j, k, mine, key))
        except FrozenStateError:
            return  # a model made in this reduce and put into a plain list is frozen from its birth
        except (IndexError, KeyError, ValueError, TypeError, StopIteration) as error:
            got = ("raises", type(error))
        try:
            wanted = ("gives", op(target, i, j, k, theirs, key))
        except (IndexError, KeyError, ValueError, TypeError, StopIteration) as error:
            wanted = ("raises", type(error))
        if got != wanted:
            assert got == wanted, (sorted(ops)[name % len(ops)], path)

    def do_put(self, draft: Any, plain: Any, source: int, into: int, key: str) -> None:
        """Puts the same object in a second place."""
        found = [(p, v) for p, v in places(plain) if kind_of(p) == "any" and isinstance(v, list | dict)]
        path, value = found[source % len(found)]
        there, receiver = found[into % len(found)]
        if holds(value, receiver):
            return
        if isinstance(receiver, list):
            receiver.append(value)
            reach(draft, there).append(reach(draft, path))
        else:
            receiver[key] = value
            reach(draft, there)[key] = reach(draft, path)

    def do_fill(self, draft: Any, plain: Any, fill: list[Any], tags: list[str]) -> None:
        draft.items.extend(copy.deepcopy(fill))
        plain.items.extend(copy.deepcopy(fill))
        draft.notes.append(Note(tags=tags))
        plain.notes.append(plain_note({"text": "", "tags": tags, "extra": {}}))
        for i, value in enumerate(fill):
            draft.table[f"k{i}"] = copy.deepcopy(value)
            plain.table[f"k{i}"] = copy.deepcopy(value)


Drafts.TestCase.settings = settings(max_examples=120, stateful_step_count=25)
test_drafts_are_plain_python = Drafts.TestCase
