"""A list that nobody else sees is lent to its draft: appending copies nothing, and everything else behaves as ever."""

import heapq
from typing import Any

import orjson
import pytest

from refold import (
    Action,
    AgentModule,
    Decision,
    DraftExpiredError,
    Engine,
    Observation,
    RunStatus,
    RuntimeBudget,
    StateModel,
    StateSchema,
    StateValueError,
    apply_patch,
)
from refold.engine.commit import fold_step
from refold.engine.frozen import FrozenList
from refold.engine.held import Held


class Line(StateModel):
    text: str
    marks: list[int] = []


class Book(StateSchema):
    lines: list[Line] = []
    plain: list[Any] = []
    count: int = 0
    heap: list[int] = [3, 7, 9]
    nested: list[list[Any]] = [[5, "a"], [7, "b"]]


def book() -> Book:
    return Book(lines=[Line(text=str(i)) for i in range(5)], plain=[1, [2], {"k": [3]}])


def step(work: Any, state: Book, sole: bool) -> Book:
    """One reduce; checks its patch, whether the state was lent or copied."""
    before = state.to_dict()
    new, ops, _ = fold_step(state, lambda draft: (work(draft), None)[1], {"current_step": state.current_step + 1}, sole)
    patched = apply_patch(before, orjson.loads(orjson.dumps(ops)))
    assert orjson.dumps(patched) == orjson.dumps(new.to_dict())
    assert isinstance(new, Book)
    return new


def push_lists(s: Book) -> None:
    for number in (3, 1, 2):
        heapq.heappush(s.nested, [number, "x"])


def heap(s: Book) -> None:
    for number in (5, 1, 4, 2, 3):
        heapq.heappush(s.heap, number)
    heapq.heappop(s.heap)
    heapq.heapreplace(s.heap, 0)
    heapq.heapify(s.heap)


WORK: dict[str, Any] = {
    "heapq": heap,
    "heapq pops": lambda s: [heapq.heappop(s.heap) for _ in list(s.heap)[1:]],
    "heapq of lists": push_lists,
    "append": lambda s: s.lines.append(Line(text="new")),
    "extend": lambda s: s.lines.extend([Line(text="a"), Line(text="b")]),
    "iadd": lambda s: s.__setattr__("plain", s.plain.__iadd__([4])),
    "append and edit": lambda s: (s.lines.append(Line(text="new")), s.lines[0].marks.append(1)),
    "edit and append": lambda s: (s.lines[-1].marks.append(1), s.lines.append(Line(text="new"))),
    "append and edit the new one": lambda s: (s.lines.append(Line(text="new")), s.lines[-1].marks.append(1)),
    "append and pop": lambda s: (s.lines.append(Line(text="new")), s.lines.pop()),
    "append and pop first": lambda s: (s.lines.append(Line(text="new")), s.lines.pop(0)),
    "append and delete": lambda s: (s.plain.append(1), s.plain.__delitem__(slice(0, 2))),
    "append and set": lambda s: (s.plain.append(1), s.plain.__setitem__(0, "x")),
    "append and set slice": lambda s: (s.plain.append(1), s.plain.__setitem__(slice(1, 2), [7, 8])),
    "append and insert": lambda s: (s.plain.append(1), s.plain.insert(0, 0), s.plain.insert(99, 9)),
    "append and sort": lambda s: (s.lines.append(Line(text="0")), s.lines.sort(key=lambda line: line.text)),
    "append and reverse": lambda s: (s.plain.append(1), s.plain.reverse()),
    "append and clear": lambda s: (s.plain.append(1), s.plain.clear()),
    "append and remove": lambda s: (s.plain.append(9), s.plain.remove(9)),
    "alias": lambda s: (
        s.__setattr__("plain", s.lines[:1]) if False else s.plain.append(s.plain[1]),
        s.plain[1].append(5),
    ),
    "read only": lambda s: [len(s.lines), list(s.lines), s.plain[0], 1 in s.plain],
    "append a nested draft": lambda s: s.plain.append(s.plain[2]),
    "replace": lambda s: (s.plain.append(1), s.__setattr__("plain", [0])),
    "same list elsewhere": lambda s: (s.plain.append(1), s.__setattr__("metadata", {"it": s.plain})),
    "multiply": lambda s: (s.plain.append(1), s.plain.__imul__(2)),
    "nothing": lambda s: s.lines.extend([]),
}


@pytest.mark.parametrize("name", WORK)
def test_lent_and_copied_states_come_to_the_same(name: str) -> None:
    lent, copied = book(), book()
    for _ in range(3):
        lent, copied = step(WORK[name], lent, True), step(WORK[name], copied, False)
        assert orjson.dumps(lent.to_dict()) == orjson.dumps(copied.to_dict())
        assert type(lent.lines) is FrozenList
        assert type(lent.plain) is FrozenList


@pytest.mark.parametrize("bad", [{"lines": 3}, {"plain": float("nan")}, {"plain": 2**70}])
def test_a_reduce_that_fails_gives_the_list_back_as_it_was(bad: dict[str, Any]) -> None:
    state = book()
    lines, before = state.lines, state.to_dict()

    def fail(s: Book) -> None:
        s.lines.append(Line(text="lost"))
        s.plain.append("lost")
        for name, value in bad.items():
            getattr(s, name).append(value)

    with pytest.raises(StateValueError):
        fold_step(state, fail, {}, True)
    assert state.lines is lines
    assert type(state.plain) is FrozenList
    assert state.to_dict() == before

    def give_up(s: Book) -> None:
        s.lines.append(Line(text="lost"))
        s.plain.append("lost")
        raise KeyError("x")

    with pytest.raises(KeyError):
        fold_step(state, give_up, {}, True)
    assert state.to_dict() == before


def test_a_draft_that_leaks_is_copied_and_revoked() -> None:
    kept: list[Any] = []

    def leak(s: Book) -> None:
        s.plain.append("mine")
        kept.append(s.plain)

    new = step(leak, book(), True)
    for use in (lambda d: d.append(1), lambda d: d[0], len, list):
        with pytest.raises(DraftExpiredError):
            use(kept[0])
    assert new.plain[-1] == "mine"
    assert type(new.plain) is FrozenList


def test_a_holder_knows_whether_it_is_the_only_one() -> None:
    held = Held(book())
    assert held.sole()
    other = held.state
    assert not held.sole()
    del other
    assert held.sole()


class Writes(AgentModule[Book]):
    tools = {"nothing": lambda: None}

    def __init__(self, keep: list[Any] | None = None) -> None:
        self.keep = keep

    def init_state(self, task: str, **inputs: Any) -> Book:
        return book()

    async def decide(self, state: Book) -> Decision:
        if self.keep is not None:
            self.keep.append((state, orjson.dumps(state.to_dict())))
        return Decision.act([Action("nothing")])

    def reduce(self, state: Book, decision: Decision, observation: Observation) -> None:
        state.lines.append(Line(text="x"))
        if state.current_step == 7:
            raise ValueError("enough")


def test_appending_in_a_run_copies_no_list_and_states_that_somebody_keeps_stay_as_they_were() -> None:
    lists: set[int] = set()

    class Watches(Writes):
        async def decide(self, state: Book) -> Decision:
            lists.add(id(state.lines))
            return await super().decide(state)

    result = Engine(Watches(), budget=RuntimeBudget(max_steps=7)).run("t")
    assert len(result.state.lines) == 12
    assert len(lists) == 1, "one list from the first step to the last"

    kept: list[Any] = []
    result = Engine(Writes(kept), budget=RuntimeBudget(max_steps=9)).run("t")
    assert result.status == RunStatus.failed
    assert len(result.state.lines) == 12
    assert len({id(state.lines) for state, _ in kept}) == 8
    for state, data in kept:
        assert orjson.dumps(state.to_dict()) == data
    assert result.trace.final_state == result.state.to_dict()
