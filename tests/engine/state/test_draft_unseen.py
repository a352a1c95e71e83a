"""What is done past a draft's methods ends in the right patch, or in an error that says what to write instead."""

import bisect
import heapq
import pickle
import random
from collections.abc import Callable
from enum import StrEnum
from functools import partial, total_ordering
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refold.engine.state.commit import fold_step
from refold.engine.state.frozen import FrozenDict, FrozenList
from refold.engine.state.model import StateModel, StateSchema, dump
from refold.errors import DraftExpiredError, EngineOwnedFieldError, FrozenStateError, ReduceError, StateValueError

put: Any = setattr
fields: Any = vars
heap: Any = heapq


class Color(StrEnum):
    red = "red"


@total_ordering
class Job(StateModel):
    """A model that equals others of its rank, as those in queues do."""

    rank: int = 0
    name: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.rank == other.rank

    def __lt__(self, other: "Job") -> bool:
        return self.rank < other.rank

    __hash__ = None  # type: ignore[assignment]


class Note(StateModel):
    v: int = 0
    tags: list[str] = []
    extra: dict[str, Any] = {}


class Board(StateSchema):
    n: int = 0
    pair: tuple[int, int] = (0, 0)
    l: list[Any] = []  # noqa: E741 - as short as the cases
    q: list[int] = [2, 9, 5]
    words: list[str] = ["red", "b"]
    jobs: list[Job] = []
    d: dict[str, Any] = {}
    by_number: dict[int, float] = {}
    ns: list[Note] = []
    dn: dict[str, Note] = {}
    rows: list[list[Note]] = []
    table: dict[str, dict[str, Note]] = {}
    one: Note = Note()


def fold(reduce: Callable[[Any], Any], old: Board | None = None) -> Board:
    """One step; its patch, read by jsonpatch, must lead to the state, and that must load again."""
    old = old or Board()
    before = dump(old)
    new, ops = fold_step(old, lambda draft: (reduce(draft), None)[1], {"current_step": old.current_step + 1})
    assert dump(old) == before
    patched = jsonpatch.apply_patch(orjson.loads(before), orjson.loads(orjson.dumps(ops)))
    assert orjson.dumps(patched) == dump(new)
    assert dump(Board.from_dict(patched)) == dump(new)
    assert isinstance(new, Board)
    return new


@pytest.mark.parametrize(
    "change",
    [
        lambda q: (heap.heappush(q, 4), q.__delitem__(slice(10, None))),
        lambda q: (heap.heapify(q), q.pop()),
        lambda q: (heap.heapreplace(q, 7), q.pop()),
        lambda q: (q.insert(0, 50), heap.heapify(q)),
        lambda q: (heap.heapreplace(q, 3), q.__delitem__(slice(0, 0))),
        lambda q: (heap.heapreplace(q, 3), q.insert(1, 7), q.remove(7)),
        lambda q: (q.append(1), list.reverse(q)),
        lambda q: (list.pop(q, 0), q.append(2)),
        lambda q: list.__setitem__(q, slice(None), []),
        lambda q: (q.sort(), bisect.insort(q, 4)),
        lambda q: q.__setitem__(slice(0, 3, 2), [7, 8]),
        lambda q: list.__init__(q, [1]),
        lambda q: random.Random(1).shuffle(q),
    ],
)
def test_code_in_c_and_methods_together(change: Callable[[Any], Any]) -> None:
    plain = [2, 9, 5]
    change(plain)
    assert fold(lambda s: change(s.q)).q == plain


FEW, MANY = 3, 100
ITEMS: dict[str, Callable[[int], Any]] = {
    "int": lambda i: i,
    "float": float,
    "text": str,
    "none": lambda i: None,
    "bool": lambda i: i % 2 == 0,
    "dict": lambda i: {"n": i},
    "list": lambda i: [i],
    "mixed": lambda i: [i, str(i), {"n": i}, float(i), [i], None][i % 6],
}
OTHERS: list[Callable[[Any], Any]] = [
    lambda v: {int: float, float: int, bool: int}.get(type(v), lambda same: [same])(v),
    lambda v: bool(v) if v in (0, 1) else v,
    lambda v: {"n": float(v["n"])} if isinstance(v, dict) else [True] if v == [1] else "new",
    lambda v: Color.red,
    lambda v: dict(v) if isinstance(v, dict) else list(v) if isinstance(v, list) else v,
]


@given(
    st.sampled_from(sorted(ITEMS)),
    st.sampled_from([FEW, MANY]),
    st.integers(0, MANY),
    st.sampled_from(OTHERS),
    st.booleans(),
    st.booleans(),
)
def test_what_is_set_past_the_methods_is_told_from_what_it_equals(
    kind: str, size: int, place: int, other: Callable[[Any], Any], before: bool, after: bool
) -> None:
    place %= size
    items = [ITEMS[kind](i) for i in range(size)]
    old = Board(l=items, d={str(i): item for i, item in enumerate(items)})

    def reduce(s: Any) -> None:
        if before:
            s.l.append("more")
            s.d["more"] = 1
        list.__setitem__(s.l, place, other(items[place]))
        dict.__setitem__(s.d, str(place), other(items[place]))
        if after:
            s.l[:1] = []
            del s.d["0"]

    plain: Any = type("Plain", (), {"l": list(items), "d": {str(i): item for i, item in enumerate(items)}})()
    reduce(plain)
    once = fold(reduce, old)
    assert dump([once.l, once.d]) == dump([plain.l, plain.d])
    assert all(type(item) is not Color for item in [*once.l, *once.d.values()])
    again = fold(lambda s: (s.l.append(1), s.d.update(last=1)), once)
    assert dump(again.l) == dump([*plain.l, 1])


@pytest.mark.parametrize(
    "put_in",
    [
        lambda items: items.insert(0, 1),
        lambda items: items.append(1),
        lambda items: items.__setitem__(3, 1),
        lambda items: items.__setitem__(slice(2, 4), [1]),
    ],
)
def test_a_long_list_knows_the_types_of_items_that_came_later(put_in: Callable[[Any], Any]) -> None:
    """True equals 1 and is other JSON, which no list of text alone could hide."""
    one = fold(lambda s: put_in(s.l), Board(l=[str(i) for i in range(MANY)]))
    place = one.l.index(1)
    assert fold(lambda s: list.__setitem__(s.l, place, True), one).l[place] is True


@pytest.mark.parametrize("size", [FEW, MANY])
def test_models_that_say_they_are_equal_are_told_apart(size: int) -> None:
    old = Board(jobs=[Job(rank=i, name="old") for i in range(size)])
    new = fold(lambda s: heap.heapreplace(s.jobs, Job(rank=0, name="new")), old)
    assert new.jobs[0].name == "new"
    assert new.jobs[1] is old.jobs[1]


@pytest.mark.parametrize("size", [FEW, MANY])
def test_numbers_of_another_type_are_refused_where_a_type_is_declared(size: int) -> None:
    old = Board(q=list(range(size)), by_number={i: float(i) for i in range(size)}, words=["red"] * size)
    for wrong in (True, 1.0):
        with pytest.raises(StateValueError, match="expected int") as caught:
            fold(lambda s, wrong=wrong: list.__setitem__(s.q, 1, wrong), old)  # type: ignore[misc]
        assert caught.value.path == "/q/1"
    with pytest.raises(StateValueError, match="expected float"):
        fold(lambda s: dict.__setitem__(s.by_number, 1, True), old)
    new = fold(lambda s: (list.__setitem__(s.words, 1, Color.red), s.words.append("x")), old)
    assert type(new.words[1]) is str


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda s: fields(s).update(n=5), {"n": 5}),
        (lambda s: s.__dict__.__setitem__("l", [1, {"a": 2}]), {"l": [1, {"a": 2}]}),
        (lambda s: object.__setattr__(s, "n", 7), {"n": 7}),
        (lambda s: object.__setattr__(s, "pair", (1, 2)), {"pair": [1, 2]}),
        (lambda s: object.__setattr__(s, "q", [1]), {"q": [1]}),
        (lambda s: fields(s.one).update(v=3, tags=["t"]), {"one": {"v": 3, "tags": ["t"], "extra": {}}}),
        (lambda s: fields(s).update({"n": fields(s).pop("n") + 1}), {"n": 1}),
        (lambda s: (fields(s).update(n=5), put(s, "n", 0)), {"n": 0}),
        (lambda s: (fields(s).update(l=[1]), s.l.append(2)), {"l": [1, 2]}),
    ],
)
def test_fields_written_past_the_draft_are_in_the_patch(change: Callable[[Any], Any], wanted: dict[str, Any]) -> None:
    new = fold(change)
    assert {name: value for name, value in new.to_dict().items() if name in wanted} == wanted


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda s: fields(s).update(nope=1), StateValueError, "no field 'nope'; its fields are"),
        (lambda s: fields(s).pop("n"), StateValueError, "Board.n was deleted"),
        (lambda s: object.__delattr__(s, "n"), StateValueError, "Board.n was deleted"),
        (lambda s: fields(s.one).pop("v"), StateValueError, "Note.v was deleted"),
        (lambda s: fields(s).update(n="five"), StateValueError, "at /n: expected int"),
        (lambda s: fields(s).update(task="other"), EngineOwnedFieldError, "task"),
        (lambda s: fields(s).update(current_step=9), EngineOwnedFieldError, "current_step"),
        (lambda s: s.__init__(), FrozenStateError, r"__init__\(\) on Board"),
        (lambda s: s.one.__setstate__({}), FrozenStateError, "__setstate__"),
    ],
)
def test_what_cannot_be_is_refused(change: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fold(change)


def test_a_field_written_past_the_draft_counts_as_a_change_beside_another_state() -> None:
    with pytest.raises(ReduceError, match="changed the draft and returned another"):
        fold_step(Board(), lambda s: (fields(s).update(n=1), Board())[1], {})


def test_the_fields_of_a_draft_that_are_kept_are_not_those_of_the_state() -> None:
    kept: list[Any] = []

    def reduce(s: Any) -> None:
        kept.append(vars(s))
        s.q.append(1)

    new = fold(reduce)
    kept[0]["n"] = 5
    assert new.n == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda s: (put(s, "ns", [Note()]), put(s.ns[0], "v", 1)), {"ns": [{"v": 1}]}),
        (lambda s: (put(s, "ns", [*s.ns, Note()]), put(s.ns[-1], "v", 3)), {"ns": [{"v": 3}]}),
        (lambda s: (put(s, "ns", [Note()]), s.ns.append(Note()), put(s.ns[1], "v", 2)), {"ns": [{}, {"v": 2}]}),
        (lambda s: (put(s, "ns", [Note()]), s.ns[0].tags.append("t")), {"ns": [{"tags": ["t"]}]}),
        (lambda s: (put(s, "dn", {"a": Note()}), put(s.dn["a"], "v", 1)), {"dn": {"a": {"v": 1}}}),
        (lambda s: (put(s, "rows", [[Note()]]), put(s.rows[0][0], "v", 1)), {"rows": [[{"v": 1}]]}),
        (lambda s: (s.rows.append([Note()]), put(s.rows[0][0], "v", 1)), {"rows": [[{"v": 1}]]}),
        (
            lambda s: (s.table.setdefault("k", {}).__setitem__("z", Note()), put(s.table["k"]["z"], "v", 1)),
            {"table": {"k": {"z": {"v": 1}}}},
        ),
        (
            lambda s: (put(s, "table", {"k": {"z": Note()}}), s.table["k"]["z"].extra.update(a=1)),
            {"table": {"k": {"z": {"extra": {"a": 1}}}}},
        ),
        (lambda s: (put(s, "ns", [Note()]), [put(n, "v", 4) for n in s.ns]), {"ns": [{"v": 4}]}),
    ],
)  # fmt: skip
def test_models_in_plain_lists_and_dicts_that_reduce_has_put_there_can_be_changed(
    change: Callable[[Any], Any], expected: dict[str, Any]
) -> None:
    assert dump(fold(change)) == dump(Board.from_dict({**Board(current_step=1).to_dict(), **expected}))


def test_a_model_that_stands_nowhere_says_what_to_write() -> None:
    def reduce(s: Any) -> None:
        note = Note()
        s.ns.append(note)
        note.v = 1

    with pytest.raises(FrozenStateError, match=r"assignment on Note\.v, which is frozen: .* through the state"):
        fold(reduce)


def test_a_frozen_value_cannot_be_made_anew() -> None:
    state = Board(l=[1, [2]], d={"a": {}}, ns=[Note(v=1)])
    committed = fold(lambda s: (s.l.append(3), s.d.update(b=1), put(s.ns[0], "v", 2)), state)
    for board in (state, committed, Board.from_dict(state.to_dict()), board_of(state)):
        before = dump(board)
        attempts: list[Callable[[], Any]] = [
            lambda b=board: b.l.__init__([9]),  # type: ignore[misc]
            lambda b=board: b.l[1].__init__([9]),  # type: ignore[misc]
            lambda b=board: b.d.__init__({"z": 1}),  # type: ignore[misc]
            lambda b=board: b.d.__init__(z=1),  # type: ignore[misc]
            lambda b=board: b.__init__(),  # type: ignore[misc]
            lambda b=board: b.__init__(n=3),  # type: ignore[misc]
            lambda b=board: b.ns[0].__init__(v=3),  # type: ignore[misc]
            lambda b=board: b.__setstate__({"__dict__": {"n": 1}}),  # type: ignore[misc]
            lambda b=board: b.model_fields_set.add("x"),  # type: ignore[misc]
            lambda b=board: b.model_fields_set.clear(),  # type: ignore[misc]
            lambda b=board: b.ns[0].model_fields_set.update(["x"]),  # type: ignore[misc]
            lambda b=board: fields(b).update(n=3),  # type: ignore[misc]
            lambda b=board: fields(b).__setitem__("n", 3),  # type: ignore[misc]
            lambda b=board: fields(b).pop("n"),  # type: ignore[misc]
            lambda b=board: b.ns[0].__dict__.clear(),  # type: ignore[misc]
        ]
        for attempt in attempts:
            with pytest.raises(FrozenStateError):
                attempt()
        assert dump(board) == before
        assert isinstance(hash(Note.__name__), int)


def board_of(state: Board) -> Board:
    """A board from another one, validated anew."""
    return Board.model_validate(state)


KEPT: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "iterator": lambda s: partial(next, iter(s.l)),
    "begun iterator": lambda s: partial(next, begun(iter(s.l))),
    "reversed": lambda s: partial(next, begun(reversed(s.l))),
    "append": lambda s: partial(s.l.append, 1),
    "extend": lambda s: partial(s.l.extend, []),
    "insert": lambda s: partial(s.l.insert, 0, 1),
    "insert at the end": lambda s: partial(s.l.insert, 99, 1),
    "pop": lambda s: s.l.pop,
    "remove": lambda s: partial(s.l.remove, 1),
    "index": lambda s: partial(s.l.index, 1),
    "count": lambda s: partial(s.l.count, 1),
    "clear": lambda s: s.l.clear,
    "sort": lambda s: s.l.sort,
    "reverse": lambda s: s.l.reverse,
    "copy": lambda s: s.l.copy,
    "set item": lambda s: partial(s.l.__setitem__, 0, 1),
    "delete item": lambda s: partial(s.l.__delitem__, 0),
    "get item": lambda s: partial(s.l.__getitem__, 0),
    "keys": lambda s: partial(list, s.d.keys()),
    "values": lambda s: partial(list, s.d.values()),
    "items": lambda s: partial(list, s.d.items()),
    "contains": lambda s: partial(lambda keys: "a" in keys, s.d.keys()),
    "size": lambda s: partial(len, s.d.keys()),
    "dict iterator": lambda s: partial(next, iter(s.d)),
    "begun dict iterator": lambda s: partial(next, begun(iter(s.d))),
    "begun keys": lambda s: partial(next, begun(iter(s.d.keys()))),
    "begun items": lambda s: partial(next, begun(iter(s.d.items()))),
    "reversed dict": lambda s: partial(next, begun(reversed(s.d))),
    "get": lambda s: partial(s.d.get, "a"),
    "dict set": lambda s: partial(s.d.__setitem__, "a", 1),
    "dict delete": lambda s: partial(s.d.__delitem__, "a"),
    "dict pop": lambda s: partial(s.d.pop, "a"),
    "popitem": lambda s: s.d.popitem,
    "dict clear": lambda s: s.d.clear,
    "update": lambda s: partial(s.d.update, a=1),
    "setdefault": lambda s: partial(s.d.setdefault, "a", 1),
    "dict copy": lambda s: s.d.copy,
    "method of a model": lambda s: s.one.to_dict,
    "set of a model": lambda s: partial(s.one.__setattr__, "v", 1),
}


def begun(iterator: Any) -> Any:
    next(iterator)
    return iterator


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("changed", [False, True])
def test_what_is_kept_of_a_draft_says_that_it_has_expired(name: str, changed: bool) -> None:
    kept: list[Callable[[], Any]] = []

    def reduce(s: Any) -> None:
        kept.append(KEPT[name](s))
        if changed:
            s.l.append(7)
            s.d["n"] = 7

    new = fold(reduce, Board(l=[1, 2], d={"a": 1}))
    before = dump(new)
    with pytest.raises(DraftExpiredError):
        kept[0]()
    assert dump(new) == before
    assert type(new.l) is FrozenList
    assert type(new.d) is FrozenDict


def test_drafts_are_pickled_as_what_they_stand_for() -> None:
    copies: list[Any] = []

    def reduce(s: Any) -> None:
        s.one.v = 4
        s.ns.append(s.one)
        copies.extend(pickle.loads(pickle.dumps([s.one, s.ns, s.d, s])))
        s.one.v = 5

    fold(reduce)
    one, ns, d, whole = copies
    assert one == Note(v=4)
    assert type(one) is Note
    assert ns == [Note(v=4)]
    assert d == {}
    assert type(whole) is Board
    assert whole.one.v == 4
