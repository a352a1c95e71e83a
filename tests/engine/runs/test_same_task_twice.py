"""Runs of one task: equal where the seed is, apart in their ids and environments, whatever text is in them."""

import random
from typing import Any

from toys.does import Does, Thing

from refold import (
    Action,
    Decision,
    Engine,
    Observation,
    RunStatus,
    Task,
    Trace,
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


def test_one_run_id_is_never_written_twice(tmp_path: Any) -> None:
    engine = Engine(Does(), traces=tmp_path)
    ids = {engine.run(Task(id="same", objective="t")).run_id for _ in range(20)}
    assert len(ids) == 20
    assert len(list(tmp_path.glob("*.trace.jsonl"))) == 20


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
