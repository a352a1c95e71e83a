"""Laws of waiting: however asks are nested, and in whatever order and portions answers come, the run ends the same."""

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RunStatus,
    StateSchema,
    WaitRequest,
    ask,
    ask_sync,
    perform,
    perform_sync,
)
from refold.testing import fold_with_jsonpatch

Op = list[Any]
"""What a tool does: ["ask", name], ["do", name]; ops in a call of their own: ["in", ops]; ops at once: ["all", ops]."""

DONE: Counter[str] = Counter()


class Log(StateSchema):
    steps: list[Any] = []


def do(name: str) -> str:
    DONE[name] += 1
    return f"did {name}"


async def play(ops: list[Op]) -> list[Any]:
    """Does what it is told, and gives what came of it."""
    found = []
    for kind, what in ops:
        if kind == "ask":
            found.append(await ask(what))
        elif kind == "do":
            found.append(await perform(do, what))
        elif kind == "in":
            found.append(await perform(play, what))
        else:
            found.append(await together(what))
    return found


async def together(ops: list[Op]) -> list[Any]:
    found: list[Any] = [None] * len(ops)

    async def one(place: int) -> None:
        (found[place],) = await play([ops[place]])

    async with anyio.create_task_group() as group:
        for place in range(len(ops)):
            group.start_soon(one, place)
    return found


def play_sync(ops: list[Op]) -> list[Any]:
    """The same in a thread, one thing after the other."""
    found: list[Any] = []
    for kind, what in ops:
        if kind == "ask":
            found.append(ask_sync(what))
        elif kind == "do":
            found.append(perform_sync(do, what))
        else:
            found.append(perform_sync(play_sync, what))
    return found


class Plays(AgentModule[Log]):
    """One step for each entry of the plan: a question of its own, or tools that play at the same time."""

    tools = {"play": play, "play_sync": play_sync}

    def __init__(self, plan: list[Any]) -> None:
        self.plan = plan

    def init_state(self, task: str) -> Log:
        return Log()

    async def decide(self, state: Log) -> Decision:
        if state.current_step == len(self.plan):
            return Decision.final("done")
        entry = self.plan[state.current_step]
        if isinstance(entry, str):
            return Decision.wait(prompt=entry)
        first, *tools = entry
        thought = await play(first)
        actions = [Action(name, {"ops": ops}) for name, ops in tools]
        return Decision.act(actions, rationale=str(thought)) if actions else Decision.wait(str(thought), prompt="and?")

    def reduce(self, state: Log, decision: Decision, observation: Observation) -> None:
        outputs = [result.output if result.ok else result.error for result in observation.results]
        state.steps.append([decision.rationale, observation.value, outputs])


NAMES = st.sampled_from("abc")
OPS = st.recursive(
    st.lists(st.tuples(st.sampled_from(["ask", "do"]), NAMES).map(list), max_size=3),
    lambda inner: st.lists(st.tuples(st.sampled_from(["in", "all"]), inner).map(list), min_size=1, max_size=2),
    max_leaves=4,
)
PLANS = st.lists(
    NAMES
    | st.tuples(
        st.lists(st.tuples(st.sampled_from(["ask", "do"]), NAMES).map(list), max_size=2),
        st.lists(st.tuples(st.sampled_from(["play", "play_sync"]), OPS), max_size=3),
    ).map(lambda pair: [pair[0], *pair[1]]),
    max_size=3,
)


def answer(request: WaitRequest) -> str:
    return f"{request.prompt}!"


def counted(ops: list[Any], kind: str) -> int:
    return sum(1 if op[0] == kind else counted(op[1], kind) if op[0] in ("in", "all") else 0 for op in ops)


def expected(plan: list[Any], kind: str) -> int:
    """How many asks, or effects, a plan has."""
    total = 0
    for entry in plan:
        if isinstance(entry, str):
            total += kind == "ask"
        else:
            total += counted(entry[0], kind) + sum(counted(ops, kind) for _, ops in entry[1:])
            total += kind == "ask" and len(entry) == 1
    return total


def assert_lawful(plan: list[Any], engine: Engine, result: RunResult, undisturbed: RunResult | None = None) -> None:
    assert (result.status, result.error) == (RunStatus.completed, None)
    result.trace.check()
    assert engine.verify(result.trace) == []
    assert fold_with_jsonpatch(result.trace).final == result.state.to_dict()
    assert sum(DONE.values()) == expected(plan, "do"), "each effect ran once"
    answered = Counter(name for r in result.trace.records if r.kind == "input" for name in r["answers"])
    assert set(answered.values()) <= {1}
    assert len(answered) == expected(plan, "ask")
    if undisturbed is not None:
        assert result.state == undisturbed.state


@settings(max_examples=settings.default.max_examples * 2 // 5)  # type: ignore[union-attr]
@given(PLANS, st.randoms(use_true_random=False))
def test_answers_in_any_order_and_portion_lead_to_the_state_of_a_run_answered_at_once(
    plan: list[Any], chance: Random
) -> None:
    chance = Random(chance.getrandbits(64))  # what is open, and in which order, is the scheduler's and not hypothesis's
    DONE.clear()
    at_once = Engine(Plays(plan), seed=1, on_wait=answer)
    undisturbed = anyio.run(at_once.arun, "t")
    assert_lawful(plan, at_once, undisturbed)

    DONE.clear()
    engine = Engine(Plays(plan), seed=1)
    result = anyio.run(engine.arun, "t")
    while result.waiting:
        assert {request.kind for request in result.waiting} <= {"ask", "wait"}, "no fate is unknown"
        portion = chance.sample(result.waiting, chance.randint(1, len(result.waiting)))
        by = at_once if chance.random() < 0.1 else engine
        resume = partial(by.aresume, result.trace, {request.id: answer(request) for request in portion})
        result = anyio.run(resume)
    assert_lawful(plan, engine, result, undisturbed)
