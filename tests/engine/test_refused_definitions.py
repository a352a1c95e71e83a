"""Modules and actions that cannot work are refused, with what is missing; and limits hold to the last level."""

from typing import Any

import orjson
import pytest

from refold import Action, AgentModule, Decision, DecisionError, Engine, RunStatus, StateSchema
from refold.engine.commit import fold_step
from refold.engine.errors import StateValueError
from refold.engine.passage import MAX_DEPTH


class State(StateSchema):
    rows: list[Any] = []


class NoInit(AgentModule[State]):
    pass


class NoDecide(NoInit):
    def init_state(self, task: str, **inputs: Any) -> State:
        return State()


class NoReduce(NoDecide):
    def decide(self, state: State) -> Decision:
        return Decision.final("done")


@pytest.mark.parametrize(
    ("module", "missing"), [(NoInit, "init_state(self, task"), (NoDecide, "decide(self"), (NoReduce, "reduce(self")]
)
def test_a_module_without_a_hook_says_which(module: type[AgentModule[State]], missing: str) -> None:
    result = Engine(module()).run("t")
    assert result.status == RunStatus.failed
    assert f"{module.__name__} has no {missing}" in str(result.error)


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("", {}, "needs the name of a tool, got ''"),
        (3, {}, "needs the name of a tool, got 3"),
        ("look", {"args": [1]}, "args of action 'look' must be a dict, got list"),
        ("look", {"args": {"x": float("nan")}}, r"Action\('look'\).args/x"),
        ("look", {"id": ""}, "id of action 'look' must be text"),
        ("look", {"id": 7}, "id of action 'look' must be text"),
    ],
)
def test_an_action_that_cannot_be_carried_out_is_refused(name: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(DecisionError, match=text):
        Action(name, **given)


@pytest.mark.parametrize("kind", [list, dict])
def test_what_nests_as_deep_as_may_be_can_be_changed(kind: type) -> None:
    rows: list[Any] = [kind()]
    for _ in range(MAX_DEPTH - 3):
        rows = [[rows[0]] if kind is list else {"0": rows[0]}]

    def deepest(draft: Any) -> None:
        inner = draft.rows[0]
        while inner:
            inner = inner["0"] if kind is dict else inner[0]
        if kind is dict:
            inner["0"] = 1
        else:
            inner.append(1)

    new, _ = fold_step(State(rows=rows), deepest, {})
    assert isinstance(new, State)
    assert State.from_dict(new.to_dict()).to_dict() == new.to_dict()
    with pytest.raises(StateValueError, match="nested deeper than"):
        fold_step(new, lambda draft: setattr(draft, "rows", [draft.rows]), {})


def test_a_list_that_is_changed_throughout_is_written_whole() -> None:
    old = State(rows=[{"n": i} for i in range(40)])

    def reduce(draft: Any) -> None:
        for row in draft.rows:
            row["n"] += 1

    new, ops = fold_step(old, reduce, {})
    assert isinstance(new, State)
    assert orjson.loads(orjson.dumps(ops)) == [{"op": "replace", "path": "/rows", "value": [*new.rows]}]
