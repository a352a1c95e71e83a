"""Runs of one task: equal where the seed is, apart in their ids and environments, whatever text is in them."""

import random

from toys.does import Does, Thing

from refold import (
    Action,
    Decision,
    Engine,
    Observation,
    new_id,
    rng,
)


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
