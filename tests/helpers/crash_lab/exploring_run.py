"""A run that explores in another way in each step.

Its children touch the world, wait a moment, ask, and fail; judges do too.
"""

from pathlib import Path
from random import Random
from typing import Any

import anyio

from crash_lab.fork_server import serve
from crash_lab.world import knows, settle, touch_and_charge
from refold import (
    UNANSWERED,
    Action,
    AgentModule,
    BeamSearch,
    BestFirst,
    BestOfN,
    Decision,
    Engine,
    MonteCarloTreeSearch,
    Observation,
    RunResult,
    RuntimeBudget,
    StateSchema,
    Task,
    WaitRequest,
    ask,
    effect,
    emit,
    new_id,
    now,
    perform,
    rng,
)
from refold.engine import Branch, Node

STEPS = 5


class World(StateSchema):
    entries: list[str] = []
    heard: list[Any] = []
    folder: str = ""


def once(folder: str, n: int) -> str:
    touch_and_charge(folder, f"once:{n}")
    return f"once {n}"


@effect(idempotent=True)
async def again(folder: str, n: int) -> str:
    touch_and_charge(folder, f"again:{n}")
    await anyio.sleep(0.001)
    return f"again {n}"


@effect(idempotent=True)
async def outer(folder: str, n: int) -> str:
    return f"{await perform(again, folder, n)}, {await perform(once, folder, n)}"


async def opinion(folder: str, entries: list[str]) -> float:
    touch_and_charge(folder, f"once:opinion on {len(entries)}")
    await anyio.sleep(0)
    return float(sum(len(entry) * (i + 1) for i, entry in enumerate(entries)) % 17)


async def judge(state: World) -> float:
    return await perform(opinion, state.folder, list(state.entries))


def length(state: World) -> float:
    return float(sum(map(len, state.entries)) % 13)


class Varied:
    """Explores in another way in each step of the run that branches."""

    def __init__(self) -> None:
        self.strategies = (
            BestOfN(judge, steps=2),
            BeamSearch(1, 2, judge),
            MonteCarloTreeSearch(length, 2, max_depth=2),
            BestFirst(judge, 2),
        )

    async def choose(self, branch: Branch) -> int | Node:
        if "~" in branch.root.run_id:
            return 1
        return await self.strategies[branch.root.step % len(self.strategies)].choose(branch)


class Exploring(AgentModule[World]):
    tools = {"once": once, "again": again, "outer": outer}

    def init_state(self, task: str, folder: str = "") -> World:
        return World(folder=folder)

    async def decide(self, state: World, candidate: int | None = None) -> Decision:
        k = state.current_step
        assert now().year > 2000
        emit("deciding", step=k, candidate=candidate)
        if len(state.entries) >= 2 * STEPS:
            return Decision.final("done")
        at = {"folder": state.folder, "n": 10 * k + (candidate or 0)}
        if candidate is not None:
            word = await ask(f"which word {k}?") if (k, candidate) == (2, 2) else ""
            meta = {"id": new_id(), "roll": rng().random(), "word": word}
            return Decision.act([Action("once", at), Action("again", at)], meta=meta)
        if k % 2:
            return Decision.branch(3)
        return Decision.branch(
            [
                Decision.act([Action("outer", at), Action("once", at)]),
                Decision.branch([Decision.act(Action("again", at)), Decision.wait("a moment", seconds=0.002)]),
                Decision.act([Action("once", {**at, "n": 666})]),
                Decision.wait(prompt=f"what of {k}?", schema={"type": "string"}),
            ]
        )

    def reduce(self, state: World, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            state.entries.append(f"{result.output}")
            if "666" in state.entries[-1]:
                raise ValueError("a bad number")
        if decision.mode == "wait":
            state.heard.append(observation.value)
            state.entries.append(f"heard {observation.value}")
        if decision.meta:
            state.heard.append(dict(decision.meta))


def answer_to(request: WaitRequest) -> Any:
    """What everybody says to a question."""
    return UNANSWERED if request.prompt == "a moment" else f"{request.prompt}".upper()


def engine(folder: Path, *, handled: bool = True) -> Engine:
    on_wait = answer_to if handled else None
    budget = RuntimeBudget(max_steps=50, max_tokens=1_000_000)
    return Engine(Exploring(), traces=folder / "runs", seed=5, branch=Varied(), budget=budget, on_wait=on_wait)


def task(folder: Path) -> Task:
    return Task(id="roam", objective="survive", inputs={"folder": str(folder)})


def fate(folder: Path, request: WaitRequest) -> dict[str, Any]:
    """The truth about a call of unknown fate: `world.txt` knows."""
    details = request.details
    if not knows(folder, details["key"]):
        return {"retry": True}
    if details["name"] == "once":
        return {"ran": f"once {details['args']['n']}"}
    entries = details["args"]["entries"]
    return {"ran": float(sum(len(entry) * (i + 1) for i, entry in enumerate(entries)) % 17)}


def resume(folder: Path, chance: Random) -> RunResult:
    """Resumes and answers until the run has ended."""
    return settle(folder, chance, engine, fate, answer_to)


if __name__ == "__main__":
    serve(
        {
            "start": lambda folder, seed: engine(folder, handled=seed % 3 > 0).run(task(folder)),
            "resume": lambda folder, seed: resume(folder, Random(seed)),
        }
    )
