"""A shop with a till: a module that runs a function in `decide`, and effects that count how often each was done."""

import threading
from collections.abc import Callable
from random import Random
from time import sleep
from typing import Any

import anyio

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    StateModel,
    StateSchema,
)


class Item(StateModel):
    name: str
    tags: list[str] = []


class Shop(StateSchema):
    by_name: dict[str, Item] = {}
    best: Item | None = None
    lists: dict[str, list[int]] = {}
    free: Any = None
    paid: list[Any] = []


class Hook(AgentModule[Shop]):
    """Runs a function in `decide`, in each of `steps` steps, and `change` in `reduce`."""

    tools = {"noop": lambda: None}

    def __init__(self, work: Callable[[Shop], Any], change: Callable[[Any], Any] | None = None, steps: int = 1) -> None:
        self.work = work
        self.change = change
        self.steps = steps

    def init_state(self, task: str) -> Shop:
        return Shop(by_name={"x": Item(name="x"), "y": Item(name="y")}, lists={"a": [1, 2], "b": [3]})

    async def decide(self, state: Shop) -> Decision:
        if state.current_step == self.steps:
            return Decision.final("done")
        return Decision.act(Action("noop"), meta={"got": await self.work(state)})

    def reduce(self, state: Any, decision: Decision, observation: Observation) -> None:
        if decision.meta:
            state.paid.append(decision.meta["got"])
        if self.change is not None:
            self.change(state)


class Till:
    """Effects that count how often each was done, and never give the same twice."""

    def __init__(self) -> None:
        self.done = 0
        self.random = Random(1)
        self.lock = threading.Lock()

    def reset(self) -> None:
        self.done = 0

    async def pay(self, what: Any = None) -> int:
        if what is None or what == "the same":
            await anyio.sleep(self.random.random() / 500)
        self.done += 1
        return self.done

    def pay_in_thread(self, what: Any = None) -> int:
        sleep(self.random.random() / 500)
        with self.lock:
            self.done += 1
            return self.done


async def assert_verified(engine: Engine, result: RunResult) -> None:
    assert result.error is None, result.error.traceback
    result.trace.check()
    assert await engine.averify(result.trace) == []


def verified(engine: Engine, result: RunResult) -> RunResult:
    anyio.run(assert_verified, engine, result)
    return result
