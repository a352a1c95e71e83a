"""Instructions and settings that are functions: recomputed, recorded, verified."""

from dataclasses import dataclass
from typing import Any

import pytest

from refold.modules.agent import Agent, FunctionGenerator, RunContext, ToolCall, tool
from refold.traces.errors import UsageError


@dataclass
class Deps:
    user: str


@tool
def find(key: str) -> str:
    """Find."""
    return key


def make_agent(sent: list[Any], **settings: Any) -> Agent[str, Any]:
    def model(messages: Any, params: Any) -> Any:
        sent.append((messages[0].content, params.temperature))
        n = sum(message.role == "assistant" for message in messages)
        return "done" if n == 3 else [ToolCall.of(f"c{n}", "find", {"key": "a"})]

    return Agent(name="a", model=FunctionGenerator(model), tools=[find], **settings)


def instructions(state: Any) -> str:
    return f"Pair {state.current_step // 2}"


def settings(state: Any) -> dict[str, Any]:
    return {"temperature": 0.5} if state.current_step == 1 else {}


def test_functions_of_the_state_make_each_turns_request_and_record_only_what_changes() -> None:
    sent: list[Any] = []
    agent = make_agent(sent, instructions=instructions, settings=settings)
    trajectory = agent.run_sync("go")
    assert sent == [("Pair 0", None), ("Pair 0", 0.5), ("Pair 1", None), ("Pair 1", None)]
    asked = [r["args"] for r in trajectory.trace.records if r.kind == "intent" and r["name"] == "generate"]
    assert [args["system"].get("body") for args in asked] == ["Pair 0", None, "Pair 1", None]
    assert [args.get("settings") for args in asked] == [None, {"temperature": 0.5}, None, None]
    assert agent.make_engine().verify(trajectory.trace) == []
    assert len(sent) == 4


def test_verification_names_the_turn_and_the_path_of_what_changed_and_asks_no_model() -> None:
    sent: list[Any] = []
    agent = make_agent(sent, instructions=instructions, settings=settings)
    trace = agent.run_sync("go").trace
    other = agent.with_(instructions=lambda state: instructions(state) + "!" * (state.current_step >= 2))
    assert "step 2, decide at /args/system/body" in str(other.make_engine().verify(trace)[0])
    other = agent.with_(settings={})
    assert "step 1, decide at /args/settings" in str(other.make_engine().verify(trace)[0])
    assert len(sent) == 4


def test_a_function_of_the_run_is_recorded_so_that_verification_needs_no_deps() -> None:
    def serve(run: RunContext[Deps]) -> str:
        return f"Serve {run.deps.user}"

    sent: list[Any] = []
    agent = make_agent(sent, instructions=serve)
    trajectory = agent.run_sync("go", deps=Deps("Ada"))
    assert sent[0] == ("Serve Ada", None)
    assert agent.make_engine().verify(trajectory.trace) == []


def test_a_function_that_raises_fails_the_run_with_its_step_and_traceback() -> None:
    def fail(state: Any) -> str:
        raise LookupError("no prompt")

    trajectory = make_agent([], instructions=fail).run_sync("go")
    error = trajectory.trace.end["error"]
    assert (error["type"], error["step"], error["phase"]) == ("LookupError", 0, "decide")
    assert "in fail" in error["traceback"]


def test_unknown_settings_are_refused_with_a_near_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'temperature'"):
        make_agent([], settings={"temprature": 1}).module()
