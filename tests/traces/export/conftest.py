"""A run with parallel calls that call others, a child run, a question, and a request to a model."""

from typing import Any

import anyio
import pytest

from refold import Action, AgentModule, Decision, Engine, StateSchema, ask, effect, perform, run_child
from refold.engine import CallUsage
from refold.traces import Trace


class Walked(StateSchema):
    messages: list[dict[str, Any]] = [{"role": "user", "body": "SECRET question"}]


@effect(usage=lambda answer: CallUsage(6, 4, 0.25))
async def generate(model: str, messages: Any) -> dict[str, Any]:
    await anyio.sleep(0.002)
    return {"message": {"role": "assistant", "body": "SECRET answer"}, "stop_reason": "stop"}


async def think(text: str) -> str:
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(perform, inner, text)
    return text


async def inner(text: str) -> str:
    await anyio.sleep(0.005)
    return text


async def fail(text: str) -> str:
    raise ValueError(f"SECRET {text}")


async def child(text: str) -> str:
    return str((await run_child(Child(), text)).final_result)


async def question(text: str) -> str:
    return str(await ask(text, str))


class Child(AgentModule[Walked]):
    tools = {"think": think}

    def init_state(self, task: str) -> Walked:
        return Walked()

    def decide(self, state: Walked) -> Decision:
        return Decision.final("ended") if state.current_step else Decision.act(Action("think", {"text": "below"}))

    def reduce(self, state: Walked, decision: Decision, observation: Any) -> None: ...


class Parent(AgentModule[Walked]):
    tools = {"think": think, "fail": fail, "child": child, "ask": question}

    def init_state(self, task: str) -> Walked:
        return Walked()

    async def decide(self, state: Walked) -> Decision:
        await perform(generate, "openai/gpt-x", state.messages)
        names = [["think", "think", "fail"], ["child"], ["ask"]]
        if state.current_step == len(names):
            return Decision.final("SECRET end")
        return Decision.act([Action(name, {"text": "SECRET text"}) for name in names[state.current_step]])

    def reduce(self, state: Walked, decision: Decision, observation: Any) -> None: ...


@pytest.fixture(scope="session")
def family_trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The trace of such a run, on the disk."""
    engine = Engine(Parent(), traces=tmp_path_factory.mktemp("family"), seed=1, on_wait=lambda request: "yes")
    return engine.run("SECRET task").raise_for_status().trace


@pytest.fixture
def parent() -> Parent:
    """The module of that run."""
    return Parent()
