"""A run of tool calls alone: `once` is not idempotent, `again` is, `outer` performs both."""

import time
from pathlib import Path
from typing import Any

import anyio

from crash_lab.fork_server import serve
from crash_lab.world import knows, touch, trace_of
from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RuntimeBudget,
    StateModel,
    StateSchema,
    Task,
    effect,
    emit,
    new_id,
    now,
    perform,
    rng,
)

STEPS = 12


class Entry(StateModel):
    name: str
    output: str


class World(StateSchema):
    entries: list[Entry] = []
    ids: dict[str, str] = {}
    rolls: list[float] = []
    folder: str = ""


@effect(idempotent=True)
async def again(folder: str, n: int) -> str:
    touch(folder, "again")
    await anyio.sleep(0.001)
    return f"again {n}"


def once(folder: str, n: int) -> str:
    touch(folder, "once")
    time.sleep(0.001)
    return f"once {n}"


@effect(idempotent=True)
async def outer(folder: str, n: int) -> str:
    first = await perform(again, folder, n)
    second = await perform(once, folder, n)
    return f"{first}, {second}"


class Simple(AgentModule[World]):
    tools = {"again": again, "once": once, "outer": outer}

    def init_state(self, task: str, folder: str = "") -> World:
        return World(folder=folder)

    async def decide(self, state: World) -> Decision:
        k = state.current_step
        assert now().year > 2000
        emit("deciding", step=k)
        if k == STEPS:
            return Decision.final("done")
        args = {"folder": state.folder, "n": k}
        names = ("again", "once", "outer") if k % 2 else ("once",)
        return Decision.act([Action(name, args) for name in names], meta={"id": new_id(), "roll": rng().random()})

    def reduce(self, state: World, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            state.entries.append(Entry(name=result.name, output=str(result.output)))
        if decision.meta:
            state.ids[str(state.current_step)] = decision.meta["id"]
            state.rolls.append(decision.meta["roll"])


def engine(folder: Path) -> Engine:
    return Engine(Simple(), traces=folder / "runs", seed=5, budget=RuntimeBudget(max_steps=50))


def settle(folder: Path) -> RunResult:
    """Resumes until the run has ended, telling the truth about calls of unknown fate: `world.txt` knows."""
    path = trace_of(folder)
    result = engine(folder).resume(path)
    while result.waiting:
        request = result.waiting[0]
        n = request.details["args"]["n"]
        answer: dict[str, Any] = {"ran": f"once {n}"} if knows(folder, request.details["key"]) else {"retry": True}
        result = engine(folder).resume(path, answer, request=request.id)
    return result


def task(folder: Path) -> Task:
    return Task(id="crash", objective="survive", inputs={"folder": str(folder)})


if __name__ == "__main__":
    serve(
        {
            "start": lambda folder, seed: engine(folder).run(task(folder)),
            "resume": lambda folder, seed: settle(folder),
        }
    )
