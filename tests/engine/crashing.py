"""A module for the kill tests, run as a script in a process of its own: `crashing.py start|resume FOLDER`.

Its tools touch the world by appending a line to `world.txt`, with their idempotency key: `once` is not idempotent,
`again` is, so the file tells how often each call ran.
"""

import sys
import time
from pathlib import Path
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
    StateModel,
    StateSchema,
    Task,
    call_info,
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


def touch(folder: str, what: str) -> None:
    with open(Path(folder) / "world.txt", "a") as file:
        file.write(f"{what} {call_info().key}\n")


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


class Crashing(AgentModule[World]):
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
    return Engine(Crashing(), traces=folder / "runs", seed=5, budget=RuntimeBudget(max_steps=50))


def settle(folder: Path) -> RunResult:
    """Resumes until the run has ended, telling the truth about calls of unknown fate: `world.txt` knows."""
    path = next((folder / "runs").glob("*.trace.jsonl"))
    result = engine(folder).resume(path)
    while result.waiting:
        request = result.waiting[0]
        ran = request.details["key"] in (folder / "world.txt").read_text() if (folder / "world.txt").exists() else False
        n = request.details["args"]["n"]
        answer: dict[str, Any] = {"ran": f"once {n}"} if ran else {"retry": True}
        result = engine(folder).resume(path, answer, request=request.id)
    return result


def task(folder: Path) -> Task:
    return Task(id="crash", objective="survive", inputs={"folder": str(folder)})


if __name__ == "__main__":
    where = Path(sys.argv[2])
    print("ready", flush=True)
    if sys.argv[1] == "start":
        engine(where).run(task(where))
    else:
        settle(where)
