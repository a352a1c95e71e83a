"""What was seen to fail in the engine our names come from, one test a fault (its sections 0, 2, 5 and 8)."""

import random
from typing import Any

import jsonpatch
import pytest

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    MaxStepsCriteria,
    Observation,
    RunStatus,
    RuntimeBudget,
    StagnationCriteria,
    StateSchema,
    StopReason,
    Task,
    Trace,
    new_id,
    rng,
)
from refold.errors import DecisionError, StateDefinitionError


class Thing(StateSchema):
    items: list[Any] = []
    nested: dict[str, Any] = {}


class Does(AgentModule[Thing]):
    """Runs a function as its reduce, for some steps."""

    tools = {"noop": lambda: "ok"}

    def __init__(self, reduce: Any = None, steps: int = 1, final: str | None = "end") -> None:
        self.work = reduce or (lambda state: None)
        self.steps = steps
        self.final = final

    def init_state(self, task: str, **inputs: Any) -> Thing:
        return Thing(nested={"a": {"b": [0, 1, [0, 1, {"x": [1]}]]}}, items=list(range(8)))

    def decide(self, state: Thing) -> Decision:
        if state.current_step >= self.steps and self.final:
            return Decision.final(self.final)
        return Decision.act([Action("noop")])

    def reduce(self, state: Thing, decision: Decision, observation: Observation) -> None:
        if decision.mode == "act":
            self.work(state)


def patch_of(work: Any) -> list[dict[str, Any]]:
    result = Engine(Does(work)).run("t")
    assert result.error is None, result.error
    patch = [op for op in result.trace.steps[0].patch if op["path"] != "/current_step"]
    assert jsonpatch.apply_patch(result.trace.state(0), result.trace.steps[0].patch) == result.trace.state(1)
    return patch


# section 0: claims that did not hold


def test_max_steps_is_validated_by_the_constructor() -> None:
    for bad in (0, -5, "5", True):
        with pytest.raises(ValueError, match="max_steps"):
            Thing(max_steps=bad)
    with pytest.raises(ValueError, match="current_step"):
        Thing(max_steps=2, current_step=3)


def test_a_budget_above_the_states_default_does_not_crash_the_run() -> None:
    result = Engine(Does(steps=40), budget=RuntimeBudget(max_steps=50)).run("t")
    assert (result.status, result.steps) == (RunStatus.completed, 41)


@pytest.mark.parametrize("make", [lambda: Decision.act([]), lambda: Decision.final(""), lambda: Decision.branch([])])
def test_decision_factories_validate(make: Any) -> None:
    with pytest.raises(DecisionError):
        make()


@pytest.mark.parametrize("answer", [42, None, ["x"], {"a": 1}])
def test_a_final_answer_that_is_not_text_is_refused_where_it_is_made(answer: Any) -> None:
    with pytest.raises(DecisionError, match="text"):
        Decision.final(answer)


def test_an_unknown_mode_and_repeated_ids_are_refused() -> None:
    with pytest.raises(DecisionError, match="not a mode"):
        Decision("dance")  # type: ignore[arg-type]
    with pytest.raises(DecisionError, match="ids must differ"):
        Decision.act([Action("a", {}, id="1"), Action("a", {}, id="1")])


# section 5: the engine


def test_further_criteria_add_to_the_default_and_do_not_replace_it() -> None:
    module = Does(lambda state: state.set_stop("success", "yes"), steps=9)
    assert Engine(module, stop=[MaxStepsCriteria(5)]).run("t").stop_reason == StopReason.success


def test_max_steps_criteria_lets_just_that_many_steps_run() -> None:
    result = Engine(Does(steps=99), stop=[MaxStepsCriteria(3)]).run("t")
    assert (result.steps, result.stop_reason) == (3, StopReason.max_steps)


def test_stagnation_is_read_off_the_state_and_does_not_leak_between_runs() -> None:
    engine = Engine(
        Does(lambda state: state.items.append("same"), steps=99), stop=[StagnationCriteria(lambda s: s.items[8:])]
    )
    for _ in range(3):
        result = engine.run("t")
        assert (result.steps, result.stop_reason) == (3, StopReason.stagnation)

    moving = Does(lambda state: state.items.append(state.current_step), steps=6)
    assert Engine(moving, stop=[StagnationCriteria(lambda s: s.items[8:])]).run("t").stop_reason == StopReason.final


def test_an_env_spec_is_not_kept_from_one_task_to_the_next(tmp_path: Any) -> None:
    from refold.tasks import current_environment

    seen: list[str] = []

    class Where(Does):
        tools = {"noop": lambda: seen.append(str(current_environment().root))}

    engine = Engine(Where())
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        engine.run(Task(objective="t", env_spec={"type": "host", "config": {"workspace": str(tmp_path / name)}}))
    assert seen == [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.mark.parametrize("message", ["json", "xml", "even wxmly", "decision mode", "parser"])
def test_no_error_is_told_apart_by_words_in_its_message(message: str) -> None:
    def fail(state: Thing) -> None:
        state.items.append("half")
        raise ValueError(message)

    result = Engine(Does(fail, steps=5)).run("t")
    assert (result.status, result.steps) == (RunStatus.failed, 0)
    assert result.state.items == list(range(8))


def test_returning_another_class_or_nonsense_from_reduce_fails_with_a_clear_message() -> None:
    class Returns(Does):
        def reduce(self, state: Thing, decision: Decision, observation: Observation) -> Any:
            return self.work(state)

    values: list[Any] = [StateSchema(), {"items": []}, 5]
    for value in values:
        result = Engine(Returns(lambda state, value=value: value)).run("t")
        assert result.status == RunStatus.failed
        assert result.error is not None
        assert "reduce() returned" in result.error.message


# section 8.1: the difference of states


def test_a_nested_append_is_one_operation_and_not_the_whole_field() -> None:
    patch = patch_of(lambda s: s.nested["a"]["b"][2][2]["x"].append(2))
    assert patch == [{"op": "add", "path": "/nested/a/b/2/2/x/-", "value": 2}]
    assert patch_of(lambda s: s.items.append(8)) == [{"op": "add", "path": "/items/-", "value": 8}]


def test_types_are_told_apart_in_the_patch() -> None:
    for new in (True, 1.0, "1"):
        assert patch_of(lambda s, new=new: s.items.__setitem__(1, new)) == [
            {"op": "replace", "path": "/items/1", "value": new}
        ]
    assert patch_of(lambda s: s.items.__setitem__(1, 1)) == []


@pytest.mark.parametrize("bad", [{1: "a"}, float("nan"), {1, 2}, b"x", 1j, object(), "\ud800", 2**70, [float("inf")]])
def test_what_json_cannot_carry_fails_the_step_with_its_path_and_is_never_a_repr(bad: Any) -> None:
    result = Engine(Does(lambda s: s.nested.update(key=bad))).run("t")
    assert result.status == RunStatus.failed
    assert result.error is not None
    assert "/nested/key" in result.error.message
    assert result.steps == 0


def test_a_lock_or_a_cycle_is_refused_where_it_is_put() -> None:
    import threading

    loop: list[Any] = []
    loop.append(loop)
    for bad, said in ((threading.Lock(), "lock"), (loop, "contains itself")):
        result = Engine(Does(lambda s, bad=bad: s.items.append(bad))).run("t")
        assert result.error is not None
        assert said in result.error.message


def test_non_json_types_are_refused_where_the_class_is_defined() -> None:
    with pytest.raises(StateDefinitionError, match=r"Bad.tags"):

        class Bad(StateSchema):
            tags: set[str] = set()


# section 8.2: cost as the state grows


def test_the_trace_grows_with_what_changes_and_a_constant_list_costs_nothing() -> None:
    def size(steps: int, ballast: int) -> int:
        class Grows(Does):
            def init_state(self, task: str, **inputs: Any) -> Thing:
                return Thing(items=["x" * 100] * ballast)

        module = Grows(lambda state: state.nested.update({str(state.current_step): "y" * 100}), steps=steps)
        return len(Engine(module, budget=RuntimeBudget(max_steps=steps + 1)).run("t").trace.data)

    assert size(400, 0) < 4.6 * size(100, 0)
    ballast = 2_000 * 103
    assert size(100, 2_000) - size(100, 0) < 2.1 * ballast, "a list that never changes is in the snapshots alone"


# section 8.4: exceptions that escaped, and texts that broke the trace


@pytest.mark.parametrize("where", ["should_stop", "observer"])
def test_exceptions_in_criteria_and_observers_do_not_leave_the_run_open(where: str) -> None:
    class Breaks:
        def should_stop(self, state: Any, meter: Any) -> None:
            raise RuntimeError("criterion")

        def __call__(self, record: Any) -> None:
            raise RuntimeError("observer")

    options: dict[str, Any] = {"stop": [Breaks()]} if where == "should_stop" else {"observers": [Breaks()]}
    result = Engine(Does(), **options).run("t")
    assert result.trace.records[-1].kind == "end"
    assert result.status == (RunStatus.failed if where == "should_stop" else RunStatus.completed)


def test_line_separators_in_text_are_ordinary_text() -> None:
    text = "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1e\r\n\t\x00 </script>"

    class Texts(Does):
        tools = {"noop": lambda: text}

        def reduce(self, state: Thing, decision: Decision, observation: Observation) -> None:
            state.items.extend(r.output for r in observation.results)

    result = Engine(Texts()).run(text)
    assert result.status == RunStatus.completed
    again = Trace.from_bytes(result.trace.data)
    again.check()
    assert again.final_state["items"][-1] == text
    assert again.final_state["task"] == text


def test_a_final_result_that_is_not_text_fails_the_step_with_its_path() -> None:
    result = Engine(Does(lambda s: setattr(s, "final_result", 42))).run("t")
    assert result.error is not None
    assert "/final_result" in result.error.message


# section 6: how deterministic a run is


def test_two_runs_of_one_task_give_traces_that_are_equal() -> None:
    class Rolls(Does):
        tools = {"noop": lambda: "ok"}

        def decide(self, state: Thing) -> Decision:
            decision = super().decide(state)
            if decision.mode == "final":
                return decision
            return Decision.act([Action("noop")], meta={"roll": rng().random(), "id": new_id()})

        def reduce(self, state: Thing, decision: Decision, observation: Observation) -> None:
            state.items.append(dict(decision.meta) if decision.meta else None)

    random.seed(0)
    first = Engine(Rolls(steps=5), seed=3).run("t").trace
    random.seed(1)
    second = Engine(Rolls(steps=5), seed=3).run("t").trace
    assert not first.diff(second), str(first.diff(second))
    assert first.data != second.data
    third = Engine(Rolls(steps=5), seed=4).run("t").trace
    difference = first.diff(third)
    assert (difference.step, difference.phase) == (0, "header") or difference.phase == "decide"


def test_one_run_id_is_never_written_twice(tmp_path: Any) -> None:
    engine = Engine(Does(), traces=tmp_path)
    ids = {engine.run(Task(id="same", objective="t")).run_id for _ in range(20)}
    assert len(ids) == 20
    assert len(list(tmp_path.glob("*.trace.jsonl"))) == 20
