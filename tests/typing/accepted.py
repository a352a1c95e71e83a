"""Calls that must pass the type checker; this file is checked and never run."""

from typing import Any, Literal, assert_type

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    StateModel,
    StateSchema,
    ask,
    ask_sync,
    effect,
    perform,
    perform_sync,
)
from refold.engine import RunFailure


class Line(StateModel):
    text: str


class Page(StateSchema):
    lines: list[Line] = []
    count: int = 0


@effect(idempotent=True)
async def fetch(url: str) -> int:
    return len(url)


def local(n: int) -> str:
    return str(n)


class Reader(AgentModule[Page]):
    tools = {"local": local, "fetch": fetch}

    def init_state(self, task: str, **inputs: Any) -> Page:
        return Page()

    async def decide(self, state: Page) -> Decision:
        assert_type(await perform(fetch, "x"), int)
        assert_type(await perform(local, 1), str)
        assert_type(perform_sync(local, n=1), str)
        assert_type(await ask("?", bool), bool)
        assert_type(await ask("?", list[str], details={"n": 1}), list[str])
        assert_type(ask_sync("?", Line, 60), Line | None)
        assert_type(await ask("?"), Any)
        assert_type(await ask("?", {"type": "boolean"}, 60.0), Any)
        assert_type(await ask("?", Literal["a", "b"]), Any)
        return Decision.act([Action("local", {"n": 1})])

    def reduce(self, state: Page, decision: Decision, observation: Observation) -> None:
        state.count += 1
        state.lines.append(Line(text="x"))
        state.set_stop("success")


class Sync(AgentModule[Page]):
    def init_state(self, task: str, width: int = 3) -> Page:
        return Page()

    def decide(self, state: Page) -> Decision:
        return Decision.final("x")

    def reduce(self, state: Page, decision: Decision, observation: Observation) -> Page:
        return state.model_copy(update={"count": 1})

    def failure(self, state: Page) -> RunFailure | None:
        return RunFailure("Torn", "the page") if state.count else None


assert_type(Engine(Reader()).run("t"), RunResult[Page])
assert_type(Engine(Reader()).run("t").raise_for_status().state.count, int)
assert_type(Reader().run("t"), RunResult[Page])
