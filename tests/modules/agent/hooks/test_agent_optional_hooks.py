"""Hooks that one may want: they fire in runs, and what they say is true."""

from collections.abc import Sequence
from typing import Any

import pytest

from refold import Engine, averify
from refold.modules.agent import FunctionGenerator, GenerateParams, Message, ScriptedGenerator, tool
from refold.modules.agent.events import CompactionEvent, ReactStep
from refold.modules.agent.generators import Generation
from refold.modules.agent.hooks.ready_made import summarize_when_long, tool_metrics
from refold.modules.agent.loop.module import AgentLoop
from refold.modules.agent.loop.setup import Setup
from refold.modules.agent.trajectory import Trajectory


@tool
def find(what: str) -> str:
    """Finds."""
    if what == "nothing":
        raise LookupError("not there")
    return what


SCRIPT: list[Any] = [
    {"calls": [{"name": "find", "arguments": {"what": "tea"}}, {"name": "find", "arguments": {"what": "nothing"}}]},
    {"calls": [{"name": "nowhere", "arguments": {}}]},
    "done",
]


async def ran(*hooks: Any, script: list[Any] = SCRIPT) -> Trajectory:
    module = AgentLoop(Setup("scout", ScriptedGenerator(script), tools=(find,), hooks=hooks))
    result = await Engine(module).arun("go")
    assert result.status == "completed"
    assert await averify(module, result.trace) == []
    return Trajectory.of(result.trace)


async def test_the_rate_of_success_is_the_real_one() -> None:
    """Seen elsewhere: `tool/success_rate` was 1, also for tools that failed."""
    metrics = (await ran(tool_metrics())).metrics
    assert metrics["tool/total_count"].total == 3
    assert metrics["tool/success_rate"].values == [1.0, 0.0, 0.0]
    assert metrics["tool/success_rate"].mean == pytest.approx(1 / 3)
    assert len(metrics["tool/total_time"]) == 3
    assert min(metrics["tool/total_time"].values) >= 0
    assert set(metrics) == {"tool/total_count", "tool/success_rate", "tool/total_time"}


async def test_detailed_metrics_are_by_tool() -> None:
    metrics = (await ran(tool_metrics(detailed=True))).metrics
    assert metrics["tool/count.find"].total == 2
    assert metrics["tool/success_rate.find"].mean == 0.5
    assert metrics["tool/success_rate.nowhere"].mean == 0.0
    assert metrics["tool/avg_time.find"].mean == metrics["tool/time.find"].mean


async def test_one_hook_measures_several_runs() -> None:
    shared = tool_metrics()
    assert [(await ran(shared)).metrics["tool/total_count"].total for _ in range(2)] == [3, 3]


async def test_a_long_conversation_is_summarised() -> None:
    """Seen elsewhere: the hook looked at one or two messages, and never fired."""

    async def write(messages: Sequence[Message], params: GenerateParams) -> Generation:
        return Generation.from_text("<summary>There was tea.</summary>")

    calls = [{"calls": [{"name": "find", "arguments": {"what": "tea " * 400}}]} for _ in range(6)]
    own = FunctionGenerator(write)
    trajectory = await ran(summarize_when_long(own, max_tokens=2_000, min_messages_to_keep=3), script=[*calls, "done"])
    compactions = trajectory.get_events_by_type(CompactionEvent)
    assert compactions
    assert compactions[0].trigger == "threshold"
    assert all(isinstance(step.reaction, object) for step in trajectory.get_events_by_type(ReactStep))
    assert len(trajectory.messages) > len(trajectory.context)
    assert "There was tea." in trajectory.context[0].content
    assert trajectory.messages[-1].content == "done"


async def test_a_short_one_is_left_alone() -> None:
    trajectory = await ran(summarize_when_long())
    assert trajectory.get_events_by_type(CompactionEvent) == []
    with pytest.raises(ValueError, match="at least 1"):
        summarize_when_long(max_tokens=0)
