"""A run of all that makes calls hard to tell apart.

One object stands in several places of the state and is an argument, equal requests are made at once, by tasks and by
threads, a secret is learnt in one step and met in the next, and tools run commands in a sandbox. Its world is that of
`mixed_run`.
"""

import asyncio
import json
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from pydantic import SecretStr

from crash_lab.fork_server import serve
from crash_lab.mixed_run import answer, happened, modes, root
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
    WaitRequest,
    bind,
    call_info,
    effect,
    perform,
    perform_sync,
)
from refold.modules.tools import LocalSandbox

ROUNDS = 2
"""How often the kinds of steps come around."""
KINDS = 6
SECRET = "hunter2-hunter2-hunter2"


class Item(StateModel):
    name: str
    size: int = 0


class Storm(StateSchema):
    by_name: dict[str, Item] = {}
    best: Item | None = None
    lists: dict[str, list[int]] = {}
    entries: list[Any] = []
    folder: str = ""


async def draw(folder: str) -> str:
    """Gives each of equal requests something of its own."""
    await anyio.sleep(0.0005)
    return happened(folder, f"draw-{call_info().key}")


def draw_in_thread(folder: str) -> str:
    time.sleep(0.0005)
    return happened(folder, f"draw-{call_info().key}")


async def pay(folder: str, item: Any, many: Any = None) -> str:
    name = item["name"] if isinstance(item, dict) else item.name
    return happened(folder, f"paid-{name}-{call_info().key}")


async def send(folder: str, text: Any) -> str:
    shown = text.get_secret_value() if isinstance(text, SecretStr) else text
    return happened(folder, f"sent-{len(shown) > 5}-{call_info().key}")


@effect(idempotent=True)
async def lanes(folder: str) -> list[list[str]]:
    """Equal requests of tasks that go on at once."""

    async def lane() -> list[str]:
        return [await perform(draw, folder) for _ in range(3)]

    return list(await asyncio.gather(*(lane() for _ in range(3))))


@effect(idempotent=True)
def threads(folder: str) -> list[list[str]]:
    """Equal requests of threads that go on at once."""
    found: list[list[str]] = [[], [], []]

    def lane(mine: list[str]) -> None:
        mine += [perform_sync(draw_in_thread, folder) for _ in range(3)]

    started = [threading.Thread(target=bind(partial(lane, mine))) for mine in found]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return found


async def command(folder: str, n: int) -> str:
    """A command in a sandbox touches the world."""
    line = f"command {call_info().key} {json.dumps(f'ran-{n}')}"
    done = await LocalSandbox(folder).exec(["sh", "-c", f"echo '{line}' >> world.txt; echo ran-{n}"])
    return done.output.strip()


class Ambiguous(AgentModule[Storm]):
    tools = {each.__name__: each for each in (draw, draw_in_thread, pay, lanes, threads, command)}

    def init_state(self, task: str, folder: str = "") -> Storm:
        return Storm(folder=folder, by_name={"x": Item(name="x")}, lists={"a": [1, 2]})

    async def decide(self, state: Storm) -> Decision:
        k, folder = state.current_step, state.folder

        def act(*names: str, meta: Any = None, **args: Any) -> Decision:
            return Decision.act([Action(name, {"folder": folder, **args}) for name in names], meta=meta)

        if k >= KINDS * ROUNDS:
            return Decision.final(f"{len(state.entries)} entries")
        kind = k % KINDS
        if kind == 0:
            paid = [await perform(pay, folder, state.by_name["x"], state.lists["a"])]
            paid += [await perform(pay, folder, state.best)] if state.best is not None else []
            return act("draw", "draw", "draw_in_thread", "draw_in_thread", meta={"paid": paid})
        if kind == 1:
            async with anyio.create_task_group() as group:
                found: list[Any] = [None, None, None]

                async def lane(i: int) -> None:
                    found[i] = [await perform(draw, folder) for _ in range(2)]

                for i in range(3):
                    group.start_soon(lane, i)
            return act("lanes", "threads", meta={"found": found})
        if kind == 2:
            sent = await perform(send, folder, SecretStr(f"{SECRET}-{k}"))
            return act("draw", meta={"sent": sent})
        if kind == 3:
            sent = await perform(send, folder, f"the secret is {SECRET}-{k - 1}")
            return act("command", "command", n=k, meta={"sent": sent})
        if kind == 4:
            first = await perform(pay, folder, state.by_name["x"], state.lists.get("b"))
            item = state.by_name["x"].to_dict()
            return act("pay", "pay", item=item, many=item, meta={"paid": first})
        return act("threads", "lanes", "threads")

    def reduce(self, state: Storm, decision: Decision, observation: Observation) -> None:
        if decision.mode != "act":
            return
        state.entries.append([[r.name, r.output, r.error] for r in observation.results])
        state.entries.append(decision.meta)
        state.by_name["x"].size += 1
        state.best = state.by_name["x"]
        state.by_name["y"] = state.by_name["x"]
        state.lists["b"] = state.lists["a"]
        state.lists["a"].append(state.current_step)


def engine(folder: Path) -> Engine:
    return Engine(Ambiguous(), traces=folder / "runs", seed=5, budget=RuntimeBudget(max_steps=50), on_wait=None)


def settle(folder: Path) -> RunResult:
    """Runs, or resumes, until the run has ended."""
    path = root(folder)
    task = Task(id="storm", objective="survive", inputs={"folder": str(folder)})
    result = engine(folder).run(task) if path is None else engine(folder).resume(path)
    while result.waiting:
        given: dict[str, Any] = {request.id: _answer(folder, request) for request in result.waiting}
        assert result.trace.path is not None
        result = engine(folder).resume(result.trace.path, given)
    return result


def _answer(folder: Path, request: WaitRequest) -> Any:
    known = answer(folder, request)
    if request.details.get("name") == "command" and "ran" in known:
        return {"ran": json.loads(known["ran"])}
    return known


if __name__ == "__main__":
    serve(modes(settle))
