"""An Agent's workload, and the same on the bare engine.

Each of N steps has an answer with a call, and a result.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import orjson

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RuntimeBudget,
    StateModel,
    StateSchema,
    Trace,
    perform,
)
from refold.modules.agent import Agent, Message, ScriptedGenerator, ToolCall, Usage, tool

TEXT = "I look at the next place, and say what is there."
RESULT = ("one hundred bytes that a tool gives, " * 3)[:100]
USAGE = Usage(input_tokens=100, output_tokens=20, total_tokens=120)


@tool
async def look(place: int) -> str:
    """Looks at a place."""
    return RESULT


@tool(name="look")
def look_in_thread(place: int) -> str:
    """Looks at a place."""
    return RESULT


@cache
def script(steps: int) -> list[Message | str]:
    """Return an answer with a call for each step but the last.

    It is made once, because the model's part does not count.
    """
    calls = [[ToolCall.of(f"call_{i}", "look", {"place": i})] for i in range(steps - 1)]
    return [*(Message("assistant", TEXT, tool_calls=each) for each in calls), "done"]


@tool(name="look")
async def look_closely(place: int) -> str:
    """Looks at a place."""
    return RESULT * 20


def run_agent(
    steps: int, folder: Path | None, *, in_threads: bool = False, closely: bool = False, **options: Any
) -> list[Message]:
    """Run an Agent, its trace in `folder`; return its trajectory's messages.

    Its tool returns 100 bytes, or 2,000 with `closely`.
    """
    answers = ScriptedGenerator(script(steps), usage=USAGE)
    engine: Any = {"traces": folder, **options}
    agent = Agent(
        name="bench",
        model=answers,
        instructions="Go on.",
        tools=[look_closely if closely else look_in_thread if in_threads else look],
        max_steps=steps + 1,
        engine=engine,
    )
    messages = anyio.run(agent.run, "work").messages
    assert len(messages) == 2 * steps
    return messages


# the same on the bare engine


class Said(StateModel):
    role: str
    content: str
    calls: list[dict[str, Any]] = []


class ChatState(StateSchema):
    messages: list[Said] = []


async def answer(messages: Sequence[Said], number: int) -> dict[str, Any]:
    return {"content": TEXT, "call": {"place": number}, "usage": {"tokens_in": 100, "tokens_out": 20}}


async def look_plainly(place: int) -> str:
    return RESULT


def look_plainly_in_thread(place: int) -> str:
    return RESULT


class BareModule(AgentModule[ChatState]):
    """A step sends all messages, calls a tool, adds two messages."""

    tools = {"look": look_plainly}

    async def init_state(self, task: str) -> ChatState:
        return ChatState(messages=[Said(role="user", content=task)])

    async def decide(self, state: ChatState) -> Decision:
        said = await perform(answer, messages=state.messages, number=state.current_step)
        return Decision.act(Action("look", said["call"]), rationale=said["content"])

    def reduce(self, state: ChatState, decision: Decision, observation: Observation) -> None:
        (action,) = decision.actions
        calls = [{"id": action.id, "name": action.name, "args": action.args}]
        state.messages.append(Said(role="assistant", content=decision.rationale or "", calls=calls))
        state.messages.append(Said(role="tool", content=observation.results[0].output))


class BareModuleInThreads(BareModule):
    """The same, with a sync tool."""

    tools = {"look": look_plainly_in_thread}


def run_bare(steps: int, folder: Path, *, in_threads: bool = False) -> None:
    """Run the bare module for `steps` steps, its trace in `folder`."""
    module = BareModuleInThreads() if in_threads else BareModule()
    result = Engine(module, budget=RuntimeBudget(max_steps=steps), traces=folder).run("work")
    assert result.steps == steps, result.error


def messages_weight(trace: Trace) -> int:
    """Return the bytes of a run's messages, as compact chat-API JSON.

    The instructions and the definitions of tools, which are in the trace once, do not count.
    """
    messages = [Message.from_dict(document) for document in trace.final_state["messages"]]
    return sum(len(orjson.dumps(message.to_openai())) for message in messages)
