"""A policy holds in sub-agents: their calls are judged, their steps counted apart, and people answer for them too."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from refold.modules.agent import Agent, FunctionGenerator, GenerateParams, Message, ToolCall, tool
from refold.modules.agent.subagent import create_subagent_tool
from refold.modules.policies import GuardSessionPolicy, HeadlessSessionPolicy, SessionPolicy
from refold.modules.tools import ask_user

pytestmark = pytest.mark.anyio
sent: list[str] = []


@tool
async def send(to: str) -> str:
    """Sends something."""
    sent.append(to)
    return f"sent to {to}"


def model(*child: list[ToolCall] | str) -> FunctionGenerator:
    """Hands the task to a sub-agent, which then makes these calls, one answer after the other."""

    def answer(messages: Sequence[Message], params: GenerateParams) -> Any:
        spawns = any(each.function.name == "spawn_agent" for each in params.tools or ())
        said = sum(message.role == "assistant" for message in messages)
        if spawns:
            return [ToolCall.of("s", "spawn_agent", {"task": "the part"})] if said == 0 else "done"
        return child[said] if said < len(child) else "part done"

    return FunctionGenerator(answer)


def made(policy: SessionPolicy, *child: Any, **settings: Any) -> Agent:
    agent = Agent(name="boss", model=model(*child), tools=[send, ask_user], policy=policy, **settings)
    agent.tools.append(create_subagent_tool(agent))
    return agent


def judge(says: str) -> FunctionGenerator:
    """A judge that allows sub-agents, and says this of what they send."""

    def answer(messages: Sequence[Message], params: GenerateParams) -> str:
        proposed = messages[-1].content
        return json.dumps({"reason": "who", "action": "allow" if "<tool>spawn_agent" in proposed else says})

    return FunctionGenerator(answer)


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall.of(f"c-{name}", "send", {"to": name}) for name in names]


async def test_the_calls_of_a_sub_agent_are_judged() -> None:
    agent = made(GuardSessionPolicy(judge_model=judge("deny")), calls("ada"))
    sent.clear()
    trajectory = await agent.run("go")
    assert trajectory.trace is not None
    assert sent == []
    assert await agent.make_engine().averify(trajectory.trace) == []
    agent = made(GuardSessionPolicy(judge_model=judge("allow")), calls("ada"))
    await agent.run("go")
    assert sent == ["ada"]


async def test_rules_hold_there_and_what_is_denied_is_not_offered() -> None:
    policy = HeadlessSessionPolicy.model_validate({"rules": {"deny": ["send(to=bob)"]}})
    sent.clear()
    await made(policy, calls("ada", "bob")).run("go")
    assert sent == ["ada"]


async def test_steps_are_counted_for_each() -> None:
    agent = made(HeadlessSessionPolicy(max_steps=2), calls("a"), calls("b"), calls("c"), calls("d"))
    sent.clear()
    trajectory = await agent.run("go")
    assert sent == ["a", "b"], "the sub-agent has two steps"
    end: Any = trajectory.events[-1]
    assert end.stop_reason == "finished"
    assert [m.content for m in trajectory.messages][-1] == "done", "and its parent has two of its own"


async def test_nobody_is_asked_there_either() -> None:
    question = [ToolCall.of("q", "ask_user", {"question": "Which?"})]
    trajectory = await made(HeadlessSessionPolicy(), question).run("go")
    assert trajectory.trace is not None
    assert trajectory.trace.status == "completed"


async def test_the_judges_question_about_a_sub_agents_call_reaches_whoever_is_there(tmp_path: Path) -> None:
    policy = GuardSessionPolicy(judge_model=judge("ask"))
    asked: list[str] = []

    def answer(request: Any) -> str:
        asked.append(request.prompt)
        return "approve"

    sent.clear()
    await made(policy, calls("ada"), engine={"on_wait": answer}).run("go")
    assert sent == ["ada"]
    assert len(asked) == 1
    assert asked[0].startswith('Allow send(to="ada")?')

    sent.clear()
    engine = {"traces": tmp_path}
    waiting = await made(policy, calls("ada"), engine=engine).run("go")
    assert waiting.trace is not None
    assert (waiting.trace.status, sent) == ("waiting", [])
    done = await made(policy, calls("ada"), engine=engine).resume(waiting.trace.run_id, "approve")
    assert sent == ["ada"]
    assert done.trace is not None
    assert done.trace.status == "completed"
