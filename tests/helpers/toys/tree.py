"""A tree to explore: each state is a way of numbers, each step of a run goes one of a few ways on.

What a state is worth depends on its way and a `salt` alone, so that a search can be done again without an engine.
"""

from hashlib import blake2b
from random import Random
from typing import Any

import anyio

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RuntimeBudget,
    StateSchema,
    Task,
    Trace,
)
from refold.engine import Branch, Node
from refold.errors import TraceNotFoundError

Way = tuple[int, ...]


class Place(StateSchema):
    way: list[int] = []
    salt: int = 0
    depth: int = 3
    width: int = 3
    notes: list[str] = []


def worth(way: Way, salt: int) -> float:
    """A number from 0 to 9, so that ties are frequent."""
    return float(blake2b(repr((salt, way)).encode(), digest_size=4).digest()[0] % 10)


def ended(way: Way, salt: int, depth: int) -> bool:
    """Whether a way ends here: at its depth, and here and there before."""
    return len(way) >= depth or (bool(way) and blake2b(repr((way, salt)).encode(), digest_size=4).digest()[0] < 30)


def value(state: Place) -> float:
    return worth(tuple(state.way), state.salt)


async def judge(state: Place) -> float:
    await anyio.sleep(0)
    return value(state)


delays = Random(0)
"""Where the tools' delays come from."""


async def go(n: int) -> int:
    for _ in range(delays.randrange(6)):
        await anyio.sleep(0)
    return n


async def fail(n: int) -> None:
    raise AssertionError("tools of a tree do not fail")


class Tree(AgentModule[Place]):
    """Branches at each place, until the way ends; candidates are tool calls."""

    tools = {"go": go}

    def init_state(self, task: str, salt: int = 0, depth: int = 3, width: int = 3) -> Place:
        return Place(salt=salt, depth=depth, width=width)

    async def decide(self, state: Place) -> Decision:
        if ended(tuple(state.way), state.salt, state.depth):
            return Decision.final("-".join(map(str, state.way)))
        return Decision.branch([self.candidate(state, n) for n in range(state.width)])

    def candidate(self, state: Place, n: int) -> Decision:
        return Decision.act(Action("go", {"n": n}))

    def reduce(self, state: Place, decision: Decision, observation: Observation) -> None:
        if observation.results:
            state.way.append(observation.results[0].output)


BUDGET = RuntimeBudget(max_steps=40)


def explore(strategy: Any, module: AgentModule[Any] | None = None, inputs: Any = None, **options: Any) -> RunResult:
    """A run of the tree under a strategy, whose whole family is checked and verified."""
    options = {"budget": BUDGET, "seed": 7, **options}
    engine = Engine(module or Tree(), branch=strategy, **options)
    result = engine.run(Task(objective="go", inputs=inputs or {}))
    assert_family_holds(engine, result)
    return result


def assert_family_holds(engine: Engine, result: RunResult) -> None:
    """The trace and each child's is whole, verifies, and ends in the state that it says."""
    for trace in (result.trace, *children(result.trace)):
        trace.check()
        assert engine.verify(trace) == [], trace
    if result.state is not None:
        assert result.trace.final_state == result.state.to_dict()
        assert 0 < result.state.max_steps >= result.state.current_step


def children(trace: Trace, *, deep: bool = True) -> list[Trace]:
    """The traces of all child runs that were begun, and of theirs, in the order in which they were opened."""
    found: list[Trace] = []
    for record in trace.records:
        if record.kind == "branch" and "opened" in record:
            for name in record["opened"]["children"]:
                try:
                    child = trace.relative(name)
                except TraceNotFoundError:
                    continue
                found += [child, *(children(child) if deep else [])]
    return found


def choices(trace: Trace) -> list[Any]:
    """What the branches of a run came to, in order."""
    return [branch for step in (*trace.steps, trace.unfinished) if step is not None for branch in step.branches]


class Taking:
    """A strategy that does what a function says."""

    def __init__(self, work: Any) -> None:
        self.work = work

    async def choose(self, branch: Branch) -> int | Node:
        chosen: int | Node = await self.work(branch)
        return chosen
