"""A run that waits in every way: by decision, by asking from tasks and from threads, and for a moment to pass.

Whoever answers says the same to the same question.
"""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import anyio

from crash_lab.fork_server import serve
from crash_lab.world import knows, touch, trace_of
from refold import (
    UNANSWERED,
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
    Trace,
    WaitRequest,
    ask,
    ask_sync,
    effect,
    emit,
    perform,
    perform_sync,
)
from refold.errors import RefoldError

STEPS = 8


class Entry(StateModel):
    name: str
    output: Any


class World(StateSchema):
    entries: list[Entry] = []
    heard: list[Any] = []
    folder: str = ""


class Approval(StateModel):
    approved: bool
    by: str


def once(folder: str, what: str) -> str:
    touch(folder, f"once:{what}")
    time.sleep(0.001)
    return f"did {what}"


@effect(idempotent=True)
async def again(folder: str, n: int) -> str:
    touch(folder, "again")
    await anyio.sleep(0.001)
    return f"again {n}"


async def approved(folder: str, n: int) -> str:
    """Not idempotent, but all it does it performs."""
    before = await perform(once, folder, f"before {n}")
    said = await ask(f"approve {n}?", Approval, details={"n": n})
    after = await perform(once, folder, f"after {n}")
    return f"{before}, {said.approved} by {said.by}, {after}"


def counted(folder: str, n: int) -> str:
    """The same from a thread, with two questions."""
    first = ask_sync(f"how many {n}?", int)
    middle = perform_sync(once, folder, f"between {n}")
    second = ask_sync(f"how many more {n}?", int)
    return f"{first} and {second}, {middle}"


class Waiting(AgentModule[World]):
    tools = {"once": once, "again": again, "approved": approved, "counted": counted}

    def init_state(self, task: str, folder: str = "") -> World:
        return World(folder=folder)

    async def decide(self, state: World) -> Decision:
        k = state.current_step
        emit("deciding", step=k)
        if k == STEPS:
            return Decision.final("done")
        if k % 4 == 3:
            return Decision.wait(prompt=f"what of {k}?", schema={"type": "string"})
        word = await ask(f"which word {k}?") if k % 4 == 1 else ""
        if k % 4 == 2:
            return Decision.wait("a moment", seconds=0.002)
        at = {"folder": state.folder, "n": k}
        did = {"folder": state.folder, "what": f"step {k} {word}".strip()}
        actions = [Action("approved", at), Action("once", did), Action("again", at), Action("counted", at)]
        return Decision.act(actions)

    def reduce(self, state: World, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            state.entries.append(Entry(name=result.name, output=result.output if result.ok else result.error))
        if decision.mode == "wait":
            state.heard.append(observation.value)


def answer_to(request: WaitRequest) -> Any:
    """What everybody says to a question."""
    prompt = request.prompt or ""
    if prompt == "a moment":
        return UNANSWERED
    if prompt.startswith("approve"):
        return {"approved": len(prompt) % 2 == 0, "by": prompt}
    return len(prompt) if prompt.startswith("how many") else f"{prompt.upper()}"


def slowly(request: WaitRequest) -> Any:
    time.sleep(0.002)
    return answer_to(request)


def engine(folder: Path, on_wait: Callable[[WaitRequest], Any] | None = None) -> Engine:
    return Engine(Waiting(), traces=folder / "runs", seed=5, budget=RuntimeBudget(max_steps=50), on_wait=on_wait)


def task(folder: Path) -> Task:
    return Task(id="pause", objective="survive", inputs={"folder": str(folder)})


def fate(folder: Path, request: WaitRequest) -> dict[str, Any]:
    """The truth about a call of unknown fate: `world.txt` knows of `once`; the others do all they do by performing."""
    details = request.details
    if details["name"].rpartition(".")[2] == "once" and knows(folder, details["key"]):
        return {"ran": f"did {details['args']['what']}"}
    return {"retry": True}


def settle(folder: Path, chance: Random) -> RunResult:
    """Resumes and answers until the run has ended: one request at a time, or several, or by a handler."""
    path = trace_of(folder)
    result = engine(folder).resume(path)
    while result.waiting:
        asked = chance.sample(result.waiting, chance.randint(1, len(result.waiting)))
        unknown = [request for request in asked if request.kind == "unknown_effect"]
        if unknown:
            given = {request.id: fate(folder, request) for request in unknown}
        else:
            given = {request.id: answer_to(request) for request in asked}
        handler = slowly if chance.random() < 0.2 else None
        result = engine(folder, handler).resume(path, given)
    return result


def at_once(folder: Path, seed: int) -> None:
    """Waits until the pipe `go` is opened, answers the one open request with `seed`, writes down what came of it."""
    path = trace_of(folder)
    Trace.load(path)
    (folder / f"ready{seed}").touch()
    with open(folder / "go"):
        pass
    try:
        result = engine(folder).resume(path, f"I am {seed}")
        told = f"{result.status}"
    except RefoldError as error:
        told = type(error).__name__
    (folder / f"told{seed}").write_text(told)


def blocked(folder: Path, seed: int) -> None:
    """Runs with a handler that never answers in time."""

    def never(request: WaitRequest) -> Any:
        (folder / "asked").touch()
        time.sleep(600)

    try:
        engine(folder, never).run(task(folder))
    except (KeyboardInterrupt, SystemExit) as stop:
        (folder / "stopped").write_text(f"{type(stop).__name__} {stop.result.status}")  # type: ignore[union-attr]
        raise


MODES: dict[str, Callable[[Path, int], Any]] = {
    "start": lambda folder, seed: engine(folder).run(task(folder)),
    "handled": lambda folder, seed: engine(folder, slowly).run(task(folder)),
    "resume": lambda folder, seed: settle(folder, Random(seed)),
    "at_once": at_once,
    "blocked": blocked,
}


if __name__ == "__main__":
    serve(MODES)
