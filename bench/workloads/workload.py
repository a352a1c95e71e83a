"""The engine's workload: steps with a tool call and state changes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from refold import Action, AgentModule, Decision, Engine, Observation, RunResult, RuntimeBudget, StateModel, StateSchema
from refold import perform as perform_effect
from refold.traces.stores import TraceStore

WORDS = "the run goes on and on, one step after another, each of them small, and all of them written down; "
SAID = (WORDS * 3)[:190]
SEEN = (WORDS[9:] * 3)[:194]


class Message(StateModel):
    """One message; each step adds two, about 400 bytes."""

    role: Literal["assistant", "tool"]
    content: str


class WorkState(StateSchema):
    """The state: each step adds two messages and changes two values."""

    messages: list[Message] = []
    count: int = 0
    notes: dict[str, dict[str, int]] = {}


def init_state() -> WorkState:
    return WorkState(notes={"last": {f"k{i}": 0 for i in range(10)}, "other": {"still": 1}})


def next_call(state: WorkState) -> Decision:
    return Decision.act(Action("look", {"place": state.count}))


def take_in(state: WorkState, observation: Observation) -> None:
    seen = observation.results[0].output
    state.messages.append(Message(role="assistant", content=f"{state.count:>8}: {SAID}"))
    state.messages.append(Message(role="tool", content=seen))
    state.notes["last"][f"k{state.count % 10}"] = state.count
    state.count += 1


def what_is_at(place: int) -> str:
    return f"{place:>6}{SEEN}"


async def look(place: int) -> str:
    return what_is_at(place)


async def look_slowly(place: int) -> str:
    await asyncio.sleep(0.005)
    return what_is_at(place)


def look_in_thread(place: int) -> str:
    return what_is_at(place)


class AsyncModule(AgentModule[WorkState]):
    """Hooks and tool run on the loop."""

    tools = {"look": look}

    async def init_state(self, task: str) -> WorkState:
        return init_state()

    async def decide(self, state: WorkState) -> Decision:
        return next_call(state)

    def reduce(self, state: WorkState, decision: Decision, observation: Observation) -> None:
        take_in(state, observation)


class SyncModule(AgentModule[WorkState]):
    """The same, with `decide` and the tool in threads."""

    tools = {"look": look_in_thread}

    def init_state(self, task: str) -> WorkState:
        return init_state()

    def decide(self, state: WorkState) -> Decision:
        return next_call(state)

    def reduce(self, state: WorkState, decision: Decision, observation: Observation) -> None:
        take_in(state, observation)


class SlowModule(AsyncModule):
    """The same as `AsyncModule`, with a tool that takes 5 ms."""

    tools = {"look": look_slowly}


async def model(messages: Sequence[Message]) -> dict[str, Any]:
    """Stand in for a model: return about 150 bytes, and usage."""
    return {"content": SAID[:60], "usage": {"tokens_in": 50 * len(messages), "tokens_out": 20, "cost": 0.001}}


class ModelModule(AsyncModule):
    """`AsyncModule` with a model call over all messages in each step."""

    async def decide(self, state: WorkState) -> Decision:
        await perform_effect(model, state.messages)
        return next_call(state)


def run(module: AgentModule[WorkState], steps: int, folder: Path | TraceStore, **options: Any) -> RunResult:
    """Run a module for `steps` steps, durability "process"; return its result."""
    result = engine(module, steps, folder, **options).run("work")
    assert result.steps == steps, result.error
    return result


def engine(module: AgentModule[WorkState], steps: int, folder: Path | TraceStore, **options: Any) -> Engine:
    return Engine(module, budget=RuntimeBudget(max_steps=steps), traces=folder, durability="process", **options)
