"""The patch of a step is the smallest that says what changed, types included; what JSON cannot carry fails the step."""

from typing import Any

import jsonpatch
import pytest
from toys.does import Does, Thing

from refold import (
    Decision,
    Engine,
    Observation,
    RunStatus,
    RuntimeBudget,
    StateSchema,
)


def patch_of(work: Any) -> list[dict[str, Any]]:
    result = Engine(Does(work)).run("t")
    assert result.error is None, result.error
    patch = [op for op in result.trace.steps[0].patch if op["path"] != "/current_step"]
    assert jsonpatch.apply_patch(result.trace.state(0), result.trace.steps[0].patch) == result.trace.state(1)
    return patch


def test_a_nested_append_is_one_operation_and_not_the_whole_field() -> None:
    patch = patch_of(lambda s: s.nested["a"]["b"][2][2]["x"].append(2))
    assert patch == [{"op": "add", "path": "/nested/a/b/2/2/x/-", "value": 2}]
    assert patch_of(lambda s: s.items.append(8)) == [{"op": "add", "path": "/items/-", "value": 8}]


@pytest.mark.parametrize("bad", [{1: "a"}, float("nan"), {1, 2}, b"x", 1j, object(), "\ud800", 2**70, [float("inf")]])
def test_what_json_cannot_carry_fails_the_step_with_its_path_and_is_never_a_repr(bad: Any) -> None:
    result = Engine(Does(lambda s: s.nested.update(key=bad))).run("t")
    assert result.status == RunStatus.failed
    assert result.error is not None
    assert "/nested/key" in result.error.message
    assert result.steps == 0


def test_a_final_result_that_is_not_text_fails_the_step_with_its_path() -> None:
    result = Engine(Does(lambda s: setattr(s, "final_result", 42))).run("t")
    assert result.error is not None
    assert "/final_result" in result.error.message


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
