"""What a trajectory tells of a turn that was cut off before it was whole: a valid chat, with all that had ended."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from chats import chat_problems

from refold import RuntimeBudget, ask, charge
from refold.modules.agent import (
    Agent,
    AgentEnd,
    FunctionGenerator,
    GenerateParams,
    GenerationStep,
    Message,
    ScriptedGenerator,
    ToolEnd,
    Trajectory,
    hook,
    tool,
)
from refold.modules.agent.chat.validation import INTERRUPTED
from refold.modules.agent.events import AgentStart


@tool
def echo(text: str) -> str:
    """Says it again."""
    return text


@tool
async def pay() -> str:
    """Costs tokens; not in a thread, which the budget may leave before it has told of its end."""
    charge(tokens_in=60)
    return "paid"


@tool
async def wonder() -> str:
    """Asks a person."""
    return str(await ask("why?"))


@tool
async def sleep() -> str:
    """Takes its time."""
    await anyio.sleep(60)
    return "slept"


@hook(ToolEnd)
async def linger(event: ToolEnd) -> None:
    """Is still at it when the run is cancelled."""
    await anyio.sleep(60)


@hook(ToolEnd)
def give_up(event: ToolEnd) -> None:
    """Wants all of the program to end."""
    raise SystemExit(1)


def agent_of(calls: list[object], tmp_path: Path, **options: object) -> Agent:
    answers = ScriptedGenerator([{"text": "I'll see.", "calls": calls}, "end"])
    engine = {"traces": str(tmp_path)}
    return Agent.model_validate(
        {"name": "cut", "model": answers, "tools": [echo, wonder, sleep], "engine": engine, **options}
    )


def told(trajectory: Trajectory) -> list[tuple[str, str, list[str]]]:
    """Role, content and calls of each message; it must be a valid chat, in every form."""
    for messages in (trajectory.messages, trajectory.context):
        assert chat_problems(messages) == []
    assert Trajectory.from_dict(trajectory.to_dict()) == trajectory
    return [(m.role, m.content, [call.name for call in m.tool_calls or ()]) for m in trajectory.messages]


CUT = [("user", "go", []), ("assistant", "I'll see.", ["echo"]), ("tool", "a", [])]
WAITING = [("user", "go", []), ("assistant", "", ["echo"]), ("tool", "a", [])]


async def cancelled(agent: Agent, enough: int) -> Trajectory:
    """Leaves the stream as soon as so many calls have ended."""
    async with agent.stream("go") as events:
        async for event in events:
            enough -= isinstance(event, ToolEnd)
            if enough == 0:
                break
    return agent.trajectory


@pytest.mark.parametrize("hooks", [[], [linger]], ids=["in a tool", "in a hook"])
async def test_a_run_that_is_left_tells_of_the_calls_that_had_ended(hooks: list[object], tmp_path: Path) -> None:
    agent = agent_of([{"echo": {"text": "a"}}, {"sleep": {}}], tmp_path, hooks=hooks)
    trajectory = await cancelled(agent, 1)
    end = trajectory.events[-1]
    assert isinstance(end, AgentEnd)
    assert end.stop_reason == "cancelled"
    assert told(trajectory) == [
        ("user", "go", []),
        ("assistant", "I'll see.", ["echo", "sleep"]),
        ("tool", "a", []),
        ("tool", INTERRUPTED, []),
    ]


async def test_the_trace_of_a_run_that_is_left_is_at_hand_and_goes_on(tmp_path: Path) -> None:
    agent = agent_of([{"echo": {"text": "a"}}], tmp_path, hooks=[linger])
    trajectory = await cancelled(agent, 1)
    assert trajectory.trace is not None
    assert Trajectory.of(trajectory.trace) == trajectory
    resumed = await agent.with_(hooks=[]).resume(trajectory.trace, on_divergence="ignore")
    assert told(resumed) == [
        ("user", "go", []),
        ("assistant", "I'll see.", ["echo"]),
        ("tool", "a", []),
        ("assistant", "end", []),
    ]


async def test_a_hook_that_wants_the_program_to_end_fails_alone(tmp_path: Path) -> None:
    agent = agent_of([{"echo": {"text": "a"}}], tmp_path, hooks=[give_up])
    trajectory = await agent.run("go")
    assert told(trajectory) == [*CUT, ("assistant", "end", [])]
    assert trajectory.trace is not None
    assert await agent.make_engine().averify(trajectory.trace) == []


async def test_the_next_turn_is_sent_what_had_ended_while_a_person_was_waited_for(tmp_path: Path) -> None:
    agent = agent_of([{"echo": {"text": "a"}}, {"wonder": {}}], tmp_path)
    assert told(await agent.run("go")) == WAITING
    sent: list[Message] = []

    def answer(messages: Sequence[Message], params: GenerateParams) -> str:
        sent.extend(messages)
        return "later"

    trajectory = await agent.with_(model=FunctionGenerator(answer)).run("more", reset=False)
    assert [(m.role, m.content) for m in sent] == [("user", "go"), ("assistant", ""), ("tool", "a"), ("user", "more")]
    assert told(trajectory) == [*WAITING, ("user", "more", []), ("assistant", "later", [])]


@pytest.mark.parametrize("limit", [55, 100], ids=["by the generation", "by a tool"])
async def test_what_a_turn_has_used_that_a_budget_cut_off_is_counted_once(limit: int, tmp_path: Path) -> None:
    used = {"input_tokens": 50, "output_tokens": 10}
    calls = [{"pay": {}}, {"echo": {"text": "a"}}]
    answers = ScriptedGenerator([{"text": "t", "calls": calls, "usage": used}, {"text": "e", "usage": used}])
    engine: Any = {"traces": tmp_path, "budget": {"max_tokens": limit}}
    agent = Agent(name="cut", model=answers, tools=[pay, echo], engine=engine)
    first = await agent.run("go")
    assert first.trace is not None
    for trajectory, generations in (
        (Trajectory.of(first.trace), 1),
        (await agent.resume(first.trace, budget=RuntimeBudget(max_tokens=1000)), 2),
    ):
        told(trajectory)
        assert trajectory.trace is not None
        spent = trajectory.trace.end["usage"]
        assert trajectory.usage.total_tokens == spent["tokens_in"] + spent["tokens_out"]
        assert len(trajectory.get_events_by_type(GenerationStep)) == generations
        assert len(trajectory.get_events_by_type(AgentEnd)) == 1


async def test_a_run_cancelled_before_its_first_state_is_resumed_with_its_events() -> None:
    agent = Agent(name="late", model=ScriptedGenerator(["done"]))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await agent.run("go")
    cut = agent.trajectory
    assert (cut.trace.status, cut.trace.first_state) == ("cancelled", None)
    resumed = await agent.resume(cut.trace)
    assert [message.content for message in resumed.messages] == ["go", "done"]
    for trajectory in (resumed, Trajectory.of(resumed.trace)):
        assert len(trajectory.get_events_by_type(AgentStart)) == 1
        (step,) = trajectory.get_events_by_type(GenerationStep)
        assert step.agent_name == "late"
