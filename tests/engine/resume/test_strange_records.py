"""A trace whose records fit the format, and yet tell something that no refold writes, is resumed or called corrupt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_traces import read_docs, write_docs

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunStatus,
    RuntimeBudget,
    StateSchema,
    start_child,
    wait_child,
)
from refold.errors import TraceCorruptError, TraceError


class Log(StateSchema):
    said: list[str] = []


class Kid(AgentModule[Log]):
    def init_state(self, task: str) -> Log:
        return Log()

    def decide(self, state: Log) -> Decision:
        return Decision.final("done")

    def reduce(self, state: Log, decision: Decision, observation: Observation) -> None:
        state.said += [str(result.output if result.ok else result.error) for result in observation.results]


async def start() -> str:
    return await start_child(Kid(), "x", name="kid")


async def wait(label: str) -> str:
    return str((await wait_child(label)).final_result)


class Chief(Kid):
    tools = {"start": start, "wait": wait}

    def decide(self, state: Log) -> Decision:
        if state.current_step == 0:
            return Decision.act(Action("start"))
        if state.current_step == 1:
            return Decision.act(Action("wait", {"label": state.said[0]}))
        return Decision.final(state.said[1])

    def child_module(self, name: str, task: Any) -> AgentModule[Any]:
        return Kid()


def stopped_with_a_warning(folder: Path) -> Path:
    path = Engine(Chief(), traces=folder, budget=RuntimeBudget(max_steps=1)).run("go").trace.path
    assert path is not None
    return path


def rewritten(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    docs = read_docs(path)
    change(docs)
    write_docs(path, docs)
    return path


@pytest.mark.parametrize("data", [None, "text", ["what"], 3])
def test_a_warning_without_data_is_no_warning(data: Any, tmp_path: Path) -> None:
    def change(docs: list[dict[str, Any]]) -> None:
        (warning,) = [doc for doc in docs if doc.get("name") == "budget_warning"]
        warning["data"] = data

    path = rewritten(stopped_with_a_warning(tmp_path), change)
    result = Engine(Chief(), traces=tmp_path).resume(path, budget=RuntimeBudget(max_steps=9))
    assert result.status is RunStatus.completed, result.error


@pytest.mark.parametrize("reason", [None, "", "-1", "of a newer refold"])
def test_an_end_for_a_reason_that_nobody_knows_is_corrupt(reason: Any, tmp_path: Path) -> None:
    path = rewritten(stopped_with_a_warning(tmp_path), lambda docs: docs[-1].update(stop_reason=reason))
    engine = Engine(Chief(), traces=tmp_path)
    with pytest.raises(TraceCorruptError, match="stop_reason"):
        engine.resume(path)
    assert engine.resume(path, budget=RuntimeBudget(max_steps=9)).status is RunStatus.completed


def test_the_same_of_a_background_child_fails_its_parent(tmp_path: Path) -> None:
    engine = Engine(Chief(), traces=tmp_path, budget=RuntimeBudget(max_steps=1))
    run = engine.run("go")
    (child,) = tmp_path.rglob("*kid*.trace.jsonl")
    rewritten(child, lambda docs: docs[-1].update(stop_reason="of a newer refold"))
    failed = engine.resume(run.trace, budget=RuntimeBudget(max_steps=9))
    assert failed.error is not None
    assert (failed.error.type, "stop_reason" in failed.error.message) == ("ChildRunError", True)


@pytest.mark.parametrize("data", [None, "text", {}, {"step": 0}])
def test_a_fork_that_does_not_tell_where_it_went_live_has_a_result(data: Any, tmp_path: Path) -> None:
    engine = Engine(Chief(), traces=tmp_path)
    fork = engine.fork(engine.run("go").trace, 1, {"/said/-": "more"}, reuse_effects=True)
    path = fork.trace.path
    assert path is not None

    def change(docs: list[dict[str, Any]]) -> None:
        place = {"step": docs[-1]["step"], "at": docs[-1]["at"]}
        docs.insert(-1, {**place, "kind": "event", "name": "live_from", "data": data, "reused": True})

    rewritten(path, change)
    again = engine.resume(path)
    assert (again.status, again.live_from) == (RunStatus.completed, None)


class Looker(Chief):
    def decide(self, state: Log) -> Decision:
        return Decision.final("over") if state.said else Decision.act(Action("wait", {"label": "0.kid-00"}))


def test_a_fork_of_itself_has_no_other_run_s_children(tmp_path: Path) -> None:
    """A trace whose header names the run itself as its source."""
    engine = Engine(Looker(), traces=tmp_path)
    path = engine.run("go").trace.path
    assert path is not None

    def change(docs: list[dict[str, Any]]) -> None:
        docs[0]["parent"] = {"kind": "fork", "run": docs[0]["run_id"], "step": 0, "hash": "0" * 32, "path": ""}
        del docs[2:]

    result = engine.resume(rewritten(path, change))
    assert "this run has started no child '0.kid-00'" in result.state.said[0]


class Forked(Kid):
    tools = {"note": lambda text: text}

    def decide(self, state: Log) -> Decision:
        if state.said:
            return Decision.final("done")
        return Decision.branch([Decision.act(Action("note", {"text": text})) for text in "ab"])


@pytest.mark.parametrize("left", [0, 1])
def test_a_branch_that_does_not_say_how_it_was_decided_is_an_error_of_the_trace(left: int, tmp_path: Path) -> None:
    path = Engine(Forked(), traces=tmp_path).run("go").trace.path
    assert path is not None

    def change(docs: list[dict[str, Any]]) -> None:
        chosen = [doc for doc in docs if doc["step"] == 0 and doc["kind"] in ("branch", "decide")][1:]
        assert len(chosen) == 2
        lost = chosen[left]
        docs[docs.index(lost)] = {"kind": "event", "step": 0, "at": lost["at"], "name": "something", "data": {}}

    engine = Engine(Forked(), traces=tmp_path)
    rewritten(path, change)
    with pytest.raises(TraceError, match="step 0"):
        engine.verify(path)
