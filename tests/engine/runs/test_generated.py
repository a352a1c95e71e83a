"""Run, verify, replay, fold and resume of modules that hypothesis makes up."""

from typing import Any

import jsonpatch
import orjson
from hypothesis import given
from hypothesis import strategies as st

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RuntimeBudget,
    StateSchema,
    Trace,
    effect,
    perform,
    perform_sync,
    replay,
    rng,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
EDITS = st.sampled_from(["append", "pop", "set", "nest", "delete", "reorder", "clear", "roll", "nothing"])
STEP = st.fixed_dictionaries(
    {
        "tools": st.lists(st.sampled_from(["echo", "fail", "slow", "inner"]), min_size=1, max_size=3),
        "edits": st.lists(EDITS, max_size=4),
        "value": JSON,
        "thinks": st.integers(0, 2),
        "parallel": st.booleans(),
    }
)


class Anything(StateSchema):
    items: list[Any] = []
    members: dict[str, Any] = {}


def echo(value: Any) -> Any:
    return value


def fail(value: Any) -> Any:
    raise ValueError(str(type(value)))


async def slow(value: Any) -> Any:
    first = await perform(echo, value)
    return [first, await perform(echo, [value])]


def inner(value: Any) -> Any:
    return [perform_sync(echo, value), rng().random()]


@effect(idempotent=True)
async def think(value: Any) -> Any:
    return value


class Generated(AgentModule[Anything]):
    tools = {"echo": echo, "fail": fail, "slow": slow, "inner": inner}

    def __init__(self, script: list[dict[str, Any]]) -> None:
        self.script = script

    def init_state(self, task: str, **inputs: Any) -> Anything:
        return Anything(members={"start": [1]})

    async def decide(self, state: Anything) -> Decision:
        if state.current_step >= len(self.script):
            return Decision.final("over")
        plan = self.script[state.current_step]
        thoughts = [await perform(think, [plan["value"], i]) for i in range(plan["thinks"])]
        actions = [Action(name, {"value": plan["value"]}) for name in plan["tools"]]
        return Decision.act(actions, meta={"thoughts": thoughts}, parallel=plan["parallel"])

    def reduce(self, state: Anything, decision: Decision, observation: Observation) -> None:
        if decision.mode == "final":
            return
        got: list[Any] = [r.output if r.ok else r.error for r in observation.results]
        for edit in self.script[state.current_step]["edits"]:
            if edit == "append":
                state.items.append(got)
            elif edit == "pop" and state.items:
                state.members["popped"] = state.items.pop(0)
            elif edit == "set":
                state.members[f"k{len(state.members)}"] = got[0]
            elif edit == "nest":
                state.members.setdefault("deep", {}).setdefault("er", []).append(got[-1])
            elif edit == "delete" and state.members:
                del state.members[next(iter(state.members))]
            elif edit == "reorder" and state.members:
                first = next(iter(state.members))
                state.members[first] = state.members.pop(first)
            elif edit == "clear":
                state.items.clear()
            elif edit == "roll" and state.items:
                state.items.append(state.items[0])
                state.items[0] = got[0]


@given(st.lists(STEP, max_size=4), st.integers(0, 2**53), st.data())
def test_a_generated_module_runs_verifies_replays_folds_and_resumes(
    script: list[dict[str, Any]], seed: int, data: st.DataObject
) -> None:
    module = Generated(script)
    engine = Engine(module, seed=seed, budget=RuntimeBudget(max_steps=9))
    result = engine.run("t")
    assert result.error is None, result.error.traceback
    trace = result.trace
    trace.check()
    assert engine.verify(trace) == []
    assert not trace.diff(engine.run("t").trace)

    document = trace.state(0)
    for k, step in enumerate(replay(trace)):
        assert orjson.dumps(step.before) == orjson.dumps(document) == orjson.dumps(trace.state(k))
        document = jsonpatch.apply_patch(document, step.patch)
        assert orjson.dumps(step.state) == orjson.dumps(document)
    assert orjson.dumps(trace.final_state) == orjson.dumps(result.state.to_dict())
    cursor = replay(trace)
    for k in range(len(trace.steps), -1, -1):
        cursor.seek(k)
        assert orjson.dumps(cursor.state) == orjson.dumps(trace.state(k))

    lines = 1 + data.draw(st.integers(0, 2**10)) % len(trace.records)  # times have digits, on which snapshots depend
    cut = Trace.from_bytes(b"".join(r.raw + b"\n" for r in list(trace.records)[:lines]))
    again = engine.resume(cut)
    while again.waiting:
        again = engine.resume(again.trace, {w.id: {"retry": True} for w in again.waiting})
    assert again.error is None, again.error.traceback
    again.trace.check()
    assert engine.verify(again.trace) == []
    assert orjson.dumps(again.trace.final_state) == orjson.dumps(trace.final_state)
