"""A fork takes what the Agent is now, and says what differs from the run that it forks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from refold import DivergenceError, Engine, RuntimeBudget, Task, effect
from refold.engine.result import live_from
from refold.modules.agent import (
    Agent,
    AgentStart,
    FunctionGenerator,
    GenerateParams,
    GenerationStart,
    Message,
    Retry,
    ToolCall,
    Trajectory,
    hook,
    tool,
)

pytestmark = pytest.mark.anyio


@tool
@effect(idempotent=True)
def look(at: int) -> str:
    """Looks."""
    return f"seen {at}"


@tool
def buy(what: str) -> str:
    """Buys."""
    return f"bought {what}"


@tool(name="look")
def look_closer(at: int, through: str = "a glass") -> str:
    """Looks through something."""
    return f"seen {at} through {through}"


class Asked:
    """The requests that the model got."""

    def __init__(self) -> None:
        self.systems: list[str | None] = []
        self.tools: list[list[str]] = []
        self.params: list[GenerateParams] = []

    def model(self, answers: int = 2) -> FunctionGenerator:
        """Calls `look` until the conversation has this many answers."""

        def scripted(messages: Sequence[Message], params: GenerateParams) -> Any:
            self.systems.append(messages[0].content if messages[0].role == "system" else None)
            self.tools.append([each.function.name for each in params.tools or ()])
            self.params.append(params)
            done = sum(message.role == "assistant" for message in messages)
            return "done" if done >= answers else ToolCall.of(f"c{done}", "look", {"at": done})

        return FunctionGenerator(scripted)

    @property
    def last(self) -> tuple[str | None, list[str]]:
        return self.systems[-1], self.tools[-1]


def agent(asked: Asked | None = None, **settings: Any) -> Agent:
    model = (asked or Asked()).model()
    return Agent(**{"name": "a", "model": model, "tools": [look], "instructions": "Be brief.", **settings})


async def paths(made: Agent, trace: Any) -> list[str]:
    """The places at which an Agent differs from the settings of a trace, according to verify."""
    return [
        op["path"] for each in await Engine(made.module()).averify(trace) if each.phase == "init" for op in each.patch
    ]


def other_model(messages: Sequence[Message], params: GenerateParams) -> str:
    return f"other: {len(messages)}"


CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "instructions": ({"instructions": "Be long."}, ["/system/body"]),
    "no instructions": ({"instructions": None}, ["/system"]),
    "a tool more": ({"tools": [look, buy]}, ["/params/tools/1"]),
    "a tool less": ({"tools": []}, ["/params/tools"]),
    "another schema": (
        {"tools": [look_closer]},
        ["/params/tools/0/function/description", "/params/tools/0/function/parameters/properties/through"],
    ),
    "model": ({"model": FunctionGenerator(other_model)}, ["/agent/model"]),
    "parameters": ({"generate_params_extra": {"top_k": 3}}, ["/params/extra/top_k"]),
    "cache": ({"cache": None}, ["/params/cache"]),
    "steps": ({"max_steps": 7}, ["/limit"]),
    "name": ({"name": "b"}, ["/agent/name"]),
    "policy": ({"policy": "headless"}, ["/agent/policy"]),
    "tool mode": ({"tool_mode": "xml"}, ["/tool_mode"]),
}


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_fork_takes_what_changed_and_says_so(change: str, at: int) -> None:
    old = agent(max_steps=5, tool_mode="api")
    run = await old.run("go")
    settings, changed = CHANGES[change]
    new = old.with_(**settings)
    fork = await new.fork(run.trace, at)
    assert fork.status == "completed"
    recorded, first = fork.trace.state(0), (await new.run("go")).trace.state(0)
    for name in ("system", "params", "limit", "tool_mode"):
        assert recorded[name] == first[name]
    for name in ("name", "model", "policy"):
        assert recorded["agent"][name] == first["agent"][name]
    assert await paths(new, fork.trace) == [], "the fork is of the Agent that made it"
    assert await paths(old, fork.trace) == changed, "and not of the old one"
    told = [op["path"] for op in fork.trace.header["parent"]["edit"] if op["path"] != "/max_steps"]
    assert told == fork.trace.header["parent"]["changed"]
    (start,) = fork.get_events_by_type(AgentStart)
    assert start.params["forked_from"]["changed"] == told


async def test_the_fork_of_an_unchanged_agent_says_nothing() -> None:
    old = agent()
    run = await old.run("go")
    for at in (0, 1):
        fork = await old.fork(run.trace, at)
        assert "changed" not in fork.trace.header["parent"]
        assert await old.make_engine().averify(fork.trace) == []


async def test_the_model_gets_the_new_instructions_and_tools() -> None:
    run = await agent().run("go")
    asked = Asked()
    await agent(asked, instructions="Be long.", tools=[look, buy]).fork(run.trace, 1)
    assert asked.last == ("Be long.", ["look", "buy"])


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, None),
        ({"instructions": "Be long."}, "/system is different in the source run"),
        ({"tools": [look, buy]}, "/params is different in the source run"),
        ({"model": FunctionGenerator(other_model)}, "model is different in the source run"),
    ],
    ids=["nothing", "instructions", "tools", "model"],
)
async def test_recorded_answers_serve_only_equal_requests(settings: dict[str, Any], why: str | None) -> None:
    old = agent()
    run = await old.run("go")
    fork = await old.with_(**settings).fork(run.trace, 0, reuse_effects=True)
    went = live_from(fork.trace)
    assert (went and went["why"]) == why
    assert fork.status == "completed"


async def test_hooks_and_stop_conditions_are_those_of_the_agent() -> None:
    seen: list[int] = []

    @hook(GenerationStart)
    def note(event: GenerationStart) -> None:
        seen.append(event.step)

    def twice(steps: Sequence[Any]) -> bool:
        return sum(type(each).__name__ == "GenerationStep" for each in steps) >= 1

    old = agent()
    run = await old.run("go")
    fork = await old.with_(hooks=[note], stop_conditions=[twice]).fork(run.trace, 0)
    assert seen == [1]
    assert len(fork.trace.steps) == 1


@pytest.mark.parametrize("edit", [{"/system/body": "Edited."}, lambda state: setattr(state.system, "body", "Edited.")])
async def test_an_edit_wins_over_the_agent_and_stays_in_later_forks(edit: Any) -> None:
    run = await agent().run("go")
    new = agent(instructions="Be long.", tools=[look, buy])
    fork = await new.fork(run.trace, 1, edit)
    assert fork.trace.state(0)["system"]["body"] == "Edited."
    apart = fork.trace.header["parent"]["configuration"]
    assert {path: value["body"] for path, value in apart.items()} == {"/system": "Be long."}
    assert await paths(new, fork.trace) == []
    later = await new.fork(fork.trace, 0)
    assert later.trace.state(0)["system"]["body"] == "Edited.", "the Agent is unchanged"
    assert await paths(new, later.trace) == []
    changed = await new.with_(instructions="Be kind.").fork(later.trace, 0)
    assert changed.trace.state(0)["system"]["body"] == "Be kind."


async def test_what_a_hook_has_replaced_stays_unless_the_agent_changed() -> None:
    @hook(GenerationStart)
    def swap(event: GenerationStart) -> Retry | None:
        if event.messages[0].content == "Be brief.":
            return Retry(messages=[Message("system", "Swapped."), *event.messages[1:]])
        return None

    old = agent(hooks=[swap])
    run = await old.run("go")
    assert run.trace.state(2)["system"]["body"] == "Swapped."
    assert (await old.fork(run.trace, 2)).trace.state(0)["system"]["body"] == "Swapped."
    new = old.with_(instructions="Be long.")
    assert (await new.fork(run.trace, 2)).trace.state(0)["system"]["body"] == "Be long."


@pytest.mark.parametrize(
    ("before", "after", "budget"),
    [
        ({"max_steps": 2}, {"max_steps": 9}, {"max_steps": 9}),
        ({"engine": {"budget": {"max_tokens": 900}}}, {"engine": {"budget": {"max_tokens": 800}}}, {"max_tokens": 800}),
        ({"engine": {"budget": {"max_tokens": 900}}}, {"engine": None}, {"max_tokens": 900}),
        ({"engine": {"budget": {"max_steps": 4}}}, {"engine": {"budget": {"max_steps": 6}}}, {"max_steps": 6}),
    ],
    ids=["steps", "tokens", "a limit stays", "steps of the budget"],
)
async def test_a_fork_has_the_limits_that_the_agent_has_changed(
    before: dict[str, Any], after: dict[str, Any], budget: dict[str, Any]
) -> None:
    run = await agent(**before).run("go")
    fork = await agent(**after).fork(run.trace, 1)
    assert fork.trace.budget.items() >= budget.items()
    assert fork.status == "completed"
    given = await agent(**after).fork(run.trace, 1, budget=RuntimeBudget(max_steps=3))
    assert given.trace.budget["max_steps"] == 3


async def test_the_limits_of_the_caller_and_of_a_resume_stay() -> None:
    made = agent()
    result = await Engine(made.module(), budget=RuntimeBudget(max_steps=2)).arun(Task(objective="go"))
    assert result.stop_reason == "budget_steps"
    resumed = await made.resume(result.trace, budget=RuntimeBudget(max_steps=12, max_tokens=5_000))
    fork = await made.fork(resumed.trace, 1)
    assert (fork.trace.budget["max_steps"], fork.trace.budget["max_tokens"]) == (12, 5_000)


async def test_resume_keeps_what_was_recorded_and_says_what_differs(tmp_path: Path) -> None:
    run = await agent(engine={"traces": tmp_path}).run("go")
    lines = run.trace.data.splitlines(keepends=True)
    cut = tmp_path / f"{run.trace.run_id}.trace.jsonl"
    cut.write_bytes(b"".join(lines[: len(lines) - 4]))
    asked = Asked()
    new = agent(asked, instructions="Be long.")
    with pytest.raises(DivergenceError, match="/system/body"):
        await new.resume(cut)
    fork = await new.resume(cut, on_divergence="fork")
    assert asked.last == ("Be long.", ["look"])
    assert fork.trace.header["parent"]["changed"] == ["/system/body"]
    kept = await new.resume(cut, on_divergence="ignore")
    assert (kept.status, asked.last) == ("completed", ("Be brief.", ["look"]))


async def test_a_fork_that_was_cut_off_is_resumed_by_its_own_agent_alone(tmp_path: Path) -> None:
    run = await agent(engine={"traces": tmp_path}).run("go")
    new = agent(instructions="Be long.", engine={"traces": tmp_path})
    fork = await new.fork(run.trace, 1)
    whole = fork.trace.data.splitlines(keepends=True)
    path = tmp_path / f"{fork.trace.run_id}.trace.jsonl"
    for count in range(1, len(whole) - 1):
        path.write_bytes(b"".join(whole[:count]))
        if count > 1:
            with pytest.raises(DivergenceError, match="/system/body"):
                await agent().resume(path)
        again = await new.resume(path)
        assert (again.status, again.answer) == ("completed", fork.answer), count
        assert await new.make_engine().averify(path) == []


async def test_a_secret_in_the_instructions_stays_out_of_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "quite-secret-1234")
    run = await agent().run("go")
    new = agent(instructions="Use quite-secret-1234.")
    fork = await new.fork(run.trace, 1, {"/system/body": "Edited."})
    assert b"quite-secret" not in fork.trace.data
    assert await paths(new, fork.trace) == []
    assert await paths(agent(), fork.trace) == ["/system/body"]


async def test_a_fork_of_the_module_takes_the_settings_too() -> None:
    run = await agent().run("go")
    new = agent(instructions="Be long.")
    result = await Engine(new.module()).afork(run.trace, 1)
    assert result.trace.state(0)["system"]["body"] == "Be long."
    assert Trajectory.of(result.trace).system_prompt == "Be long."
