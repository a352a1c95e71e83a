"""Step limits and stop criteria: what is refused, what ends a run, and that nothing leaks from one run to the next."""

from typing import Any

import pytest
from toys.does import Does, Thing

from refold import (
    Engine,
    MaxStepsCriteria,
    RunStatus,
    StagnationCriteria,
    StopReason,
)


def test_max_steps_is_validated_by_the_constructor() -> None:
    for bad in (0, -5, "5", True):
        with pytest.raises(ValueError, match="max_steps"):
            Thing(max_steps=bad)
    with pytest.raises(ValueError, match="current_step"):
        Thing(max_steps=2, current_step=3)


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
