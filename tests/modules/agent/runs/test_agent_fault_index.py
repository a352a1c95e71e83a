"""Each fault B1 to B21 has its tests, by the list in `faults.toml`; those that had none elsewhere are here."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from places import TESTS

from refold.modules.agent import Agent, Continue, Finish, Hook, ScriptedGenerator, StopCondition, ToolCall, Usage, tool
from refold.modules.agent.events import AgentEnd, AgentStalled, GenerationStep, ReactStep
from refold.modules.agent.generators import FatalGeneratorError
from refold.modules.agent.stopping import estimated_cost, token_usage, tool_use

HERE = Path(__file__).parent
FAULTS: dict[str, list[str]] = tomllib.loads((HERE / "faults.toml").read_text())

pytestmark = pytest.mark.anyio


def names_in(path: Path) -> list[str]:
    nodes = ast.parse(path.read_text()).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_every_fault_is_on_the_list() -> None:
    assert list(FAULTS) == [f"B{i}" for i in range(1, 22)]
    assert all(FAULTS.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_the_tests_that_are_named(fault: str) -> None:
    for place in FAULTS[fault]:
        path, _, prefix = place.partition("::")
        names = names_in(TESTS / "modules" / path)
        assert [name for name in names if name.startswith(prefix or "test_")], place


def test_no_test_of_a_fault_is_left_out() -> None:
    for path in sorted((TESTS / "modules").rglob("test_*.py")):
        for name in names_in(path):
            fault = name.removeprefix("test_").split("_")[0]
            if fault[:1] == "b" and fault[1:].isdigit():
                listed = [place.partition("::") for place in FAULTS[fault.upper()]]
                assert any(path.match(where) and name.startswith(prefix) for where, _, prefix in listed), name


@tool
async def note(text: str = "x") -> str:
    """Notes a text."""
    return text


@tool(catch=False)
async def fails() -> str:
    """Fails."""
    raise RuntimeError("no")


def call(name: str, id: str = "c1") -> ToolCall:
    return ToolCall.of(id, name, {})


def agent_of(answers: list[Any], **config: Any) -> Agent:
    usage = config.pop("usage", None)
    return Agent(name="tester", model=ScriptedGenerator(answers, usage=usage), tools=[note, fails], **config)


@pytest.mark.parametrize(
    ("answers", "hooks", "said"),
    [
        ([FatalGeneratorError("no")], [], ["go"]),
        ([[call("fails"), call("note", "c2")]], [], ["go", "", '<error type="RuntimeError">no</error>', "x"]),
        ([[call("note")]], [tool_use("note")], ["go", "", "x"]),
    ],
    ids=["no-answer", "uncaught", "stopped"],
)
async def test_b3_an_end_in_the_first_step_keeps_the_goal_and_all_that_was_said(
    answers: list[Any], hooks: list[Hook], said: list[str]
) -> None:
    trajectory = await agent_of(answers, hooks=hooks).run("go")
    assert [m.content for m in trajectory.messages] == said


async def test_b6_a_run_that_stalls_says_so() -> None:
    agent = agent_of(["hm"], stop_conditions=[StopCondition(lambda steps: False, name="never")])
    async with agent.stream("go") as events:
        told = [event async for event in events]
    assert [type(event) for event in told][-2:] == [AgentStalled, AgentEnd]
    end = told[-1]
    assert isinstance(end, AgentEnd)
    assert (end.stop_reason, end.status) == ("stalled", "finished")
    assert agent.trajectory.trace is not None
    assert agent.trajectory.trace.stop_reason == "stagnation"


async def test_b7_hooks_with_one_name_each_have_their_say() -> None:
    hooks = [
        Hook(lambda event: Finish("enough"), GenerationStep, name="same"),
        Hook(lambda event: Continue(feedback="more"), GenerationStep, name="same"),
    ]
    trajectory = await agent_of(["one", "two", "three"], hooks=hooks).run("go")
    assert len(trajectory.get_events_by_type(GenerationStep)) == 1
    (step,) = trajectory.get_events_by_type(ReactStep)
    assert step.reaction == Finish("enough")


async def test_b11_many_small_calls_trip_a_limit_and_a_total_has_its_cost() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, total_tokens=15, cost_usd=0.5)
    for hook in (token_usage(40), estimated_cost(1.2)):
        trajectory = await agent_of([[call("note")]] * 8, hooks=[hook], usage=usage).run("go")
        assert len(trajectory.get_events_by_type(GenerationStep)) == 3
        assert (trajectory.usage.total_tokens, trajectory.usage.cost_usd) == (45, 1.5)


def test_b18_events_errors_and_costs_load_no_client_of_a_provider() -> None:
    code = """
import asyncio, sys
from refold.modules.agent import Agent, ScriptedGenerator
from refold.modules.agent.generators import FatalGeneratorError

async def main():
    agent = Agent(name="t", model=ScriptedGenerator(["hi", FatalGeneratorError("no")]))
    for goal in ("one", "two"):
        async with agent.stream(goal, reset=False) as events:
            async for event in events:
                event.as_dict(), repr(event), getattr(event, "estimated_cost", None)

asyncio.run(main())
assert "litellm" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
