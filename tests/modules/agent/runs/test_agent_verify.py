"""Verify is clean on runs of every kind: tools that time out or are cancelled, modes that fall back, summaries."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from chats import chat_problems
from timing import SOON, StandingClock, cancelled_when

from refold import RuntimeBudget, Trace, effect
from refold.modules.agent import Agent, FunctionGenerator, Message, ScriptedGenerator, ToolCall, Trajectory, tool
from refold.modules.agent.events import AgentEnd, GenerationStep, ToolError
from refold.modules.agent.generators import ContextOverflowError, FatalGeneratorError
from refold.modules.agent.modes.forms import TEXT_MODES

pytestmark = pytest.mark.anyio


@tool
@effect(idempotent=True)
async def note(text: str = "x") -> str:
    """Notes a text."""
    return text


def call(name: str, id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall.of(id, name, arguments)


async def verified(agent: Agent, trajectory: Trajectory) -> Trace:
    trace = trajectory.trace
    assert trace is not None
    assert await agent.make_engine().averify(trace) == []
    assert chat_problems([Message.from_dict(m) for m in trace.final_state["messages"]]) == []
    assert chat_problems(trajectory.messages) == []
    return trace


def reason_of(trajectory: Trajectory) -> str:
    last = trajectory.events[-1]
    assert isinstance(last, AgentEnd)
    return last.stop_reason


async def test_a_tool_that_takes_too_long_is_an_error_that_the_model_reads() -> None:
    @tool
    @effect(timeout=0.05)
    async def slow() -> str:
        """Sleeps."""
        await anyio.sleep(30)
        return "late"

    agent = Agent(name="t", model=ScriptedGenerator([[call("slow"), call("note", "c2")], "done"]), tools=[slow, note])
    async with agent.stream("go") as stream:
        events = [event async for event in stream]
    assert len([event for event in events if isinstance(event, ToolError)]) == 1
    assert reason_of(agent.trajectory) == "finished"
    assert "longer than its timeout" in agent.history[2].content
    await verified(agent, agent.trajectory)


@pytest.mark.parametrize("by", ["cancellation", "deadline"])
async def test_a_cancelled_run_verifies_and_goes_on(by: str, tmp_path: Path) -> None:
    blocked = True
    asleep: list[bool] = []

    @tool
    @effect(idempotent=True)
    async def slow() -> str:
        """Sleeps, at first."""
        if blocked:
            asleep.append(True)
            await anyio.sleep(30)
        return "awake"

    answers: list[Any] = [[call("note")], [call("slow"), call("note", "c2")], "done"]
    options: Any = {"traces": tmp_path}
    if by == "deadline":
        options |= {"budget": {"max_runtime_seconds": SOON}, "clock": StandingClock(lambda: asleep)}
    agent = Agent(name="t", model=ScriptedGenerator(answers), tools=[slow, note], engine=options)
    async with cancelled_when(lambda: asleep and by == "cancellation"):
        await agent.run("go")
    assert reason_of(agent.trajectory) == ("budget_time" if by == "deadline" else "cancelled")
    trace = await verified(agent, agent.trajectory)
    blocked = False
    resumed = await agent.resume(trace, budget=RuntimeBudget(max_steps=10, max_runtime_seconds=60))
    assert reason_of(resumed) == "finished"
    assert [m.content for m in resumed.messages] == ["go", "", "x", "", "awake", "x", "done"]
    await verified(agent, resumed)


async def test_a_conversation_that_is_summarised_verifies() -> None:
    answers: list[Any] = [[call("note", f"c{i}")] for i in range(7)]
    answers += [ContextOverflowError("too long"), "<summary>notes</summary>", "done"]
    agent = Agent(name="t", model=ScriptedGenerator(answers), tools=[note])
    trajectory = await agent.run("go")
    await verified(agent, trajectory)
    assert "notes" in trajectory.context[0].content


async def test_a_provider_without_native_calls_is_asked_in_text() -> None:
    asked: list[bool] = []

    def answer(messages: Any, params: Any) -> Any:
        asked.append(params.tools is not None)
        if params.tools is not None:
            return FatalGeneratorError("this model does not support tools")
        assert "# Tools" in messages[0].content
        told = messages[-1].content
        return '<tool-call name="note">{"text": "hi"}</tool-call>' if told == "go" else f"I read {told}"

    agent = Agent(name="t", model=FunctionGenerator(answer), tools=[note])
    trajectory = await agent.run("go")
    assert asked == [True, False, False]
    assert agent.tool_mode == "auto"
    assert [m.role for m in trajectory.messages] == ["user", "assistant", "tool", "assistant"]
    assert "<tool-response" in trajectory.messages[-1].content
    trace = await verified(agent, trajectory)
    assert trace.final_state["tool_mode"] == "json-in-xml"


@pytest.mark.parametrize("mode", ["xml", "json", "json-in-xml", "json-with-tag", "pythonic"])
async def test_every_text_mode_is_read_and_told(mode: Any) -> None:
    written = TEXT_MODES[mode].write([call("note", text="a < b & c"), call("note", "c2", text="-1")])
    agent = Agent(name="t", model=ScriptedGenerator([written, "done"]), tools=[note], tool_mode=mode)
    trajectory = await agent.run("go")
    assert [m.content for m in trajectory.messages if m.role == "tool"] == ["a < b & c", "-1"]
    assert trajectory.messages[1].tool_calls is not None
    await verified(agent, trajectory)


async def test_a_run_of_a_large_result_streams_and_verifies(tmp_path: Path) -> None:
    @tool
    async def large() -> str:
        """Gives more than a record holds."""
        return "é" * 100_000

    big = large.with_(offload=False)
    both: tuple[Any, ...] = ({}, {"traces": tmp_path})
    for options in both:
        agent = Agent(
            name="t", model=ScriptedGenerator([[call("large"), call("note", "c2")], "done"]), tools=[big, note],
            engine=options,
        )  # fmt: skip
        async with agent.stream("go") as stream:
            async for _ in stream:
                pass
        assert [len(m.content) for m in agent.history] == [2, 0, 100_000, 1, 4]
        trace = await verified(agent, agent.trajectory)
        assert Trajectory.of(trace).messages == agent.history


async def test_the_samples_of_the_pages_run() -> None:
    @tool(name="add_numbers", description="This is my tool")
    def add(x: int, y: int) -> int:
        return x + y

    model = ScriptedGenerator([[call("add_numbers", x=1, y=2)], "3"])
    agent = Agent(name="my_agent", model=model, tools=[add])
    trajectory = await agent.as_task()("how much is 1 + 2?")
    assert trajectory.messages[2].content == "3"
    params: dict[str, Any] = {"max_steps": 1}
    steps = (await agent.with_(**params).as_task()("how much is 1 + 2?")).get_events_by_type(GenerationStep)
    assert len(steps) == 1
    assert agent.trajectory.messages == []
