"""The run ends as its chosen child did, or goes on where that had only done its steps."""

import pytest
from toys.menu import SEARCHES, Eats, Menu, eat, judge_model, last_letter
from toys.tree import children, choices, explore

from refold import (
    BestOfN,
    Decision,
    Engine,
    MaxStepsCriteria,
    MaxTokensCriteria,
    Observation,
    RuntimeBudget,
    StagnationCriteria,
    StopReason,
    perform,
)


class Ending(Eats):
    def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
        super().reduce(state, decision, observation)
        if state.eaten and state.eaten[-1] in list(StopReason):
            state.set_stop(state.eaten[-1], "that is it")


@pytest.mark.parametrize(
    "reason",
    [
        "success",
        "final",
        "agent_condition",
        "critic_stop",
        "stagnation",
        "context_overflow",
        "env_terminal",
        "max_steps",
    ],
)
@pytest.mark.parametrize("name", ["n", "n1", "beam", "best first", "tree"])
def test_the_run_ends_as_its_chosen_child_did(name: str, reason: str) -> None:
    result = explore(SEARCHES[name], Ending(Decision.branch([eat(reason), eat("A")])))
    assert (result.stop_reason, result.final_result, result.steps) == (reason, "that is it", 1)
    alone = Engine(Ending(eat(reason))).run("t")
    assert (result.status, result.state.stop_reason) == (alone.status, alone.state.stop_reason)


def test_stop_criteria_hold_in_children_by_what_the_child_has_done() -> None:
    module = Eats(eat("x"), Decision.branch([eat("a"), eat("b")]), *[eat("m")] * 9)
    result = explore(BestOfN(last_letter), module, stop=[MaxStepsCriteria(4)])
    assert [child.step_count for child in children(result.trace)[:2]] == [3, 3]
    assert result.stop_reason == "max_steps"
    assert result.state.eaten[:4] == ["x", "a", "m", "m"]

    still = StagnationCriteria(lambda state: state.eaten, 3)
    result = explore(BestOfN(last_letter), module, stop=[still])
    assert (result.stop_reason, result.status) == ("stagnation", "stopped")
    assert result.state.eaten == ["x", "a", "m", "m", "m"]


def test_a_criterion_with_a_budgets_name_ends_a_child_and_cuts_nothing() -> None:
    class Spends(Eats):
        async def decide(self, state: Menu) -> Decision:  # type: ignore[override]
            await perform(judge_model, ["a"])
            return super().decide(state)

    module = Spends(Decision.branch([eat("a"), eat("b")]), *[eat("m")] * 9)
    result = explore(BestOfN(lambda state: float(ord(state.eaten[0]))), module, stop=[MaxTokensCriteria(30)])
    assert choices(result.trace)[0]["cut"] is None
    assert (result.stop_reason, result.status) == ("budget_tokens", "stopped")
    assert result.state.eaten == ["b", "m", "m", "m"]


def test_steps_are_counted_as_the_state_says_and_never_exceed_the_limit() -> None:
    module = Eats(*[Decision.branch([eat("a"), eat("b")])] * 30)
    result = explore(BestOfN(last_letter, steps=3), module, budget=RuntimeBudget(max_steps=5))
    assert (result.stop_reason, result.steps, result.state.current_step, result.state.max_steps) == (
        "budget_steps",
        5,
        5,
        5,
    )
    for child in children(result.trace):
        state = child.final_state
        assert state["current_step"] <= state["max_steps"] == 5
