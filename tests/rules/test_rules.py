"""Each rule of the design (its section 1) has a test here that bears its number."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RunStatus,
    RuntimeBudget,
    StateModel,
    StateSchema,
    StopReason,
    Trace,
    effect,
    now,
    perform,
    replay,
)
from refold.errors import EffectError, EffectNotAllowedError, FrozenStateError


class Item(StateModel):
    text: str
    tags: list[str] = []


class Bag(StateSchema):
    items: list[Item] = []
    nested: dict[str, Any] = {"a": {"b": [1, {"c": []}]}}
    log: list[Any] = []


def fetch(n: int) -> dict[str, Any]:
    return {"n": n, "list": [1, 2, 3], "text": "line\u2028sep\u2029\u0085 \U0001f600"}


class Collects(AgentModule[Bag]):
    tools = {"fetch": fetch}
    steps = 4

    def init_state(self, task: str, **inputs: Any) -> Bag:
        return Bag(items=[Item(text="first")])

    def decide(self, state: Bag) -> Decision | Awaitable[Decision]:
        if state.current_step == self.steps:
            return Decision.final("done")
        return Decision.act([Action("fetch", {"n": state.current_step})])

    def reduce(self, state: Bag, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            state.items.append(Item(text=result.output["text"], tags=["new"]))
            state.items[0].tags.append(str(result.output["n"]))
            state.nested["a"]["b"][1]["c"].append(result.output["list"])


def collected(**options: Any) -> RunResult:
    result = Engine(Collects(), seed=1, **options).run("collect")
    assert result.error is None
    return result


def test_rule_1_only_reduce_changes_state() -> None:
    seen: list[FrozenStateError] = []

    def attack(state: Bag) -> None:
        attempts: list[Callable[[], Any]] = [
            lambda: setattr(state, "log", []),
            lambda: delattr(state, "log"),
            lambda: state.items.append(Item(text="x")),
            lambda: setattr(state.items[0], "text", "x"),
            lambda: state.items[0].tags.append("x"),
            lambda: state.nested["a"]["b"][1].update(c=1),
            lambda: state.nested["a"]["b"][1]["c"].append(1),
            lambda: state.nested.pop("a"),
            lambda: state.set_stop("final"),
            lambda: state.items.sort(key=str),
            lambda: state.items.__iadd__([Item(text="x")]),
            lambda: state.nested.__ior__({"x": 1}),
        ]
        for attempt in attempts:
            with pytest.raises(FrozenStateError) as caught:
                attempt()
            seen.append(caught.value)

    class Attacks(Collects):
        def decide(self, state: Bag) -> Decision | Awaitable[Decision]:
            attack(state)
            return super().decide(state)

        async def act(self, state: Bag, decision: Decision) -> Observation:
            attack(state)
            seen: Observation = await super().act(state, decision)
            return seen

    result = Engine(Attacks(), stop=[]).run("t")
    assert result.error is None
    attack(result.state)
    assert any("Bag.items" in str(error) for error in seen)
    assert all("reduce()" in str(error) for error in seen)
    assert result.trace.steps[0].before == Bag(items=[Item(text="first")], task="t").to_dict()


def test_rule_2_only_effects_touch_the_world_and_each_is_journaled() -> None:
    ran: list[str] = []

    def tool() -> str:
        ran.append("tool")
        return "t"

    @effect(idempotent=True)
    def read() -> str:
        ran.append("read")
        return "r"

    class Journaled(Collects):
        tools = {"fetch": fetch, "tool": tool}

        async def decide(self, state: Bag) -> Decision:
            if state.current_step:
                return Decision.final("x")
            await perform(read)
            return Decision.act([Action("tool")])

        def reduce(self, state: Bag, decision: Decision, observation: Observation) -> None:
            with pytest.raises(EffectNotAllowedError):
                now()

    result = Engine(Journaled()).run("t")
    assert result.error is None
    effects = [e for step in result.trace.steps for e in step.effects]
    assert [(e.phase, e.name.rsplit(".")[-1], e.open) for e in effects] == [
        ("decide", "read", False),
        ("act", "tool", False),
    ]
    assert ran == ["read", "tool"]
    assert Engine(Journaled()).verify(result.trace) == []
    assert ran == ["read", "tool"], "verifying and replaying touch nothing"


def test_rule_3_live_sees_what_replay_will_see() -> None:
    live: list[Any] = []
    shared = [1, 2, 3]

    def leaky() -> list[int]:
        return shared

    async def fails() -> None:
        raise KeyError("gone")

    class Sees(Collects):
        tools = {"fetch": fetch, "leaky": leaky, "pair": lambda: (1, (2, 3))}

        async def decide(self, state: Bag) -> Decision:
            if state.current_step:
                return Decision.final("x")
            with pytest.raises(EffectError) as caught:
                await perform(fails)
            live.append((caught.value.error_type, caught.value.message))
            return Decision.act([Action("leaky"), Action("pair")])

        def reduce(self, state: Bag, decision: Decision, observation: Observation) -> None:
            for result in observation.results:
                live.append(result.output)
                state.log.append(result.output)
            if observation.results:
                shared.append(99)
                state.log[0].append(4)

    module = Sees()
    result = Engine(module).run("t")
    assert result.error is None
    first_time = list(live)
    assert first_time == [("KeyError", "'gone'"), [1, 2, 3], [1, [2, 3]]]
    live.clear()
    assert Engine(module).verify(result.trace) == []
    assert live == first_time
    observation = result.trace.steps[0].observation
    assert observation is not None
    assert observation["results"][0]["output"] == [1, 2, 3]
    assert result.state.log == [[1, 2, 3, 4], [1, [2, 3]]]


def test_rule_4_the_trace_is_the_source_of_truth_and_any_library_folds_it() -> None:
    result = collected()
    document: Any = None
    states: list[Any] = []
    for line in result.trace.data.split(b"\n"):
        record = json.loads(line) if line else {}
        if document is None and record.get("kind") == "snapshot":
            document = record["state"]
            states.append(document)
        elif "patch" in record:
            document = jsonpatch.apply_patch(document, record["patch"])
            states.append(document)
    assert json.dumps(document) == json.dumps(result.state.to_dict()) == json.dumps(result.trace.final_state)
    for k in range(result.steps + 1):
        assert json.dumps(states[k]) == json.dumps(result.trace.state(k))
    assert Bag.from_dict(result.trace.final_state) == result.state
    assert [s.index for s in replay(result.trace)] == list(range(result.steps))


def sized(steps: int) -> tuple[int, list[int]]:
    class Long(Collects):
        pass

    Long.steps = steps
    result = Engine(Long(), budget=RuntimeBudget(max_steps=steps + 1)).run("t")
    assert result.error is None
    commits = [len(r.raw) for r in result.trace.records if r.kind == "commit"]
    return len(result.trace.data), commits


def test_rule_5_a_step_costs_what_it_changes_and_never_what_the_state_holds() -> None:
    small, _ = sized(50)
    large, commits = sized(400)
    assert large < 8 * small * 1.3, "the trace grows with what changes, not with its square"
    assert max(commits[10:-1]) < 1.2 * min(commits[10:-1]), "a late step is written in as many bytes as an early one"

    class Shares(Collects):
        def reduce(self, state: Bag, decision: Decision, observation: Observation) -> None:
            state.log.append(1)

    kept: list[Bag] = []

    class Keeps(Shares):
        def decide(self, state: Bag) -> Decision | Awaitable[Decision]:
            kept.append(state)
            return super().decide(state)

    Engine(Keeps()).run("t")
    assert all(state.items is kept[0].items and state.nested is kept[0].nested for state in kept)


def test_rule_6_nothing_written_is_lost_and_nothing_is_guessed(tmp_path: Path) -> None:
    whole = collected(traces=tmp_path).trace.data
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for cut in range(0, len(whole), 7):
        trace = Trace.from_bytes(whole[:cut])
        kept = sum(1 for end in ends if end <= cut)
        assert len(trace.records) == kept
        if cut < len(whole) and kept:
            assert trace.status == ("completed" if kept == len(ends) else "interrupted")

    path = tmp_path / "cut.trace.jsonl"
    intents = [r for r in Trace.from_bytes(whole).records if r.kind == "intent"]
    path.write_bytes(whole[: whole.index(intents[1].raw) + len(intents[1].raw) + 1])
    engine = Engine(Collects())
    waiting = engine.resume(path)
    assert waiting.status == RunStatus.waiting
    assert waiting.waiting[0].details["args"] == {"n": 1}
    again = engine.resume(path, {"retry": True})
    assert again.state.items == collected().state.items


def test_rule_7_a_budget_is_a_wall() -> None:
    calls: list[int] = []

    @effect(usage=lambda r: {"tokens_in": 10, "tokens_out": 0, "cost": 0.01}, tokens=10)
    async def model() -> str:
        calls.append(1)
        return "x"

    class Spends(Collects):
        tools = {"model": model}

        async def decide(self, state: Bag) -> Decision:
            await perform(model)
            return Decision.act([Action("model", {}, id=str(i)) for i in range(3)])

        def reduce(self, state: Bag, decision: Decision, observation: Observation) -> None: ...

    for budget, reason, most in (
        (RuntimeBudget(max_tokens=65), StopReason.budget_tokens, 6),
        (RuntimeBudget(max_steps=2), StopReason.budget_steps, 8),
        (RuntimeBudget(max_cost_usd=0.05), StopReason.budget_cost, 7),
    ):
        calls.clear()
        result = Engine(Spends(), budget=budget).run("t")
        assert (result.status, result.stop_reason) == (RunStatus.stopped, reason)
        assert len(calls) <= most
        assert result.usage.tokens == 10 * len(calls)
        assert orjson.loads(result.trace.records[-1].raw)["usage"]["tokens_in"] == 10 * len(calls)
