"""A task's resources, environment and criteria hold from every entry point, before the loop and after it."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import anyio
import pytest
from timing import cancelled_when

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RunStatus,
    StateSchema,
    StopReason,
    Task,
)
from refold.tasks import current_environment, register_environment


class Names(StateSchema):
    names: list[str] = []


def listing() -> list[str]:
    return list(current_environment().list())


async def note(text: str) -> None:
    current_environment().write_text("note.txt", text)


class Lists(AgentModule[Names]):
    tools = {"listing": listing, "note": note}
    started = 0

    def init_state(self, task: str, **inputs: Any) -> Names:
        type(self).started += 1
        return Names()

    def decide(self, state: Names) -> Decision | Awaitable[Decision]:
        if state.current_step:
            return Decision.final(",".join(state.names))
        return Decision.act([Action("note", {"text": "hello"}), Action("listing")], parallel=False)

    def reduce(self, state: Names, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            assert result.ok, result.error
            state.names.extend(result.output or [])


def entries(task: Task) -> "list[RunResult]":
    """The same task through every door."""
    engine = Engine(Lists())

    async def streamed() -> RunResult:
        async with engine.stream(task) as run:
            async for _ in run:
                pass
        return run.result

    return [
        engine.run(task),
        anyio.run(engine.arun, task),
        anyio.run(streamed),
        Lists().run(task),
        anyio.run(Lists().arun, task),
    ]


def test_all_bad_resources_are_reported_at_once_from_every_entry_point(tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "out").symlink_to("/etc")
    task = Task(
        objective="t",
        env_spec={"type": "host", "config": {"workspace": str(tmp_path)}},
        resources=[
            {"kind": "file", "path": "missing.txt"},
            {"kind": "dir", "path": "file.txt"},
            {"kind": "file", "path": "../escape"},
            {"kind": "file", "path": "out/passwd"},
            {"kind": "url", "uri": "nonsense"},
            {"kind": "file", "path": "optional.txt", "required": False},
        ],
    )
    Lists.started = 0
    for result in entries(task):
        assert (result.status, result.stop_reason) == (RunStatus.failed, StopReason.task_validation_failed)
        assert result.error is not None
        for code in ("MISSING", "KIND_MISMATCH", "OUTSIDE_WORKSPACE", "URL_INVALID"):
            assert code in result.error.message
        assert "optional" not in result.error.message
        assert result.state is None
        assert result.trace.records[-1].kind == "end"
        assert not result.task_result.success
    assert Lists.started == 0


def test_tools_reach_the_environment_of_their_own_run(tmp_path: Path) -> None:
    results: list[RunResult] = []

    async def one(i: int) -> None:
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / f"only-{i}.txt").write_text("x")
        task = Task(objective="t", env_spec={"type": "host", "config": {"workspace": str(folder)}})
        results.append(await Engine(Lists()).arun(task))

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for i in range(10):
                group.start_soon(one, i)

    anyio.run(main)
    assert {r.final_result for r in results} == {f"note.txt,only-{i}.txt" for i in range(10)}


def test_a_scratch_environment_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("x")
    task = Task(objective="t", env_spec={"type": "scratch", "config": {"source": str(tmp_path)}})
    result = Engine(Lists()).run(task)
    assert result.final_result == "given.txt,note.txt"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["given.txt"]


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"type": "nowhere"}, "ENV_TYPE_UNKNOWN"),
        ({"type": "host", "capabilities": ["teleport"]}, "ENV_CAPABILITY_MISSING"),
        ({"type": "host", "required_tools": ["listing", "hammer"]}, "ENV_REQUIRED_TOOL_MISSING"),
        ({"type": "host", "config": {"workspace": "/does/not/exist"}}, "ENV"),
    ],
)
def test_an_environment_that_cannot_be_had_ends_the_run_and_is_never_silently_none(spec: Any, code: str) -> None:
    Lists.started = 0
    for result in entries(Task(objective="t", env_spec=spec)):
        assert (result.status, result.stop_reason) == (RunStatus.failed, StopReason.env_capability_mismatch)
        assert result.error is not None
        assert code in result.error.message
        assert result.trace.status == "failed"
    assert Lists.started == 0


def test_opening_and_closing_pair_whatever_happens(tmp_path: Path) -> None:
    from refold.tasks import HostEnvironment

    events: list[str] = []

    class Counting(HostEnvironment):
        async def open(self) -> None:
            events.append("open")
            await super().open()

        async def close(self) -> None:
            events.append("close")
            await super().close()

    register_environment("counting", lambda config, workspace: Counting(workspace))

    class Boom(Lists):
        def decide(self, state: Names) -> Decision:
            raise ValueError("boom")

    spec = {"type": "counting"}
    engine = Engine(Boom(), workspace=tmp_path)
    assert engine.run(Task(objective="t", env_spec=spec)).status == RunStatus.failed

    asleep = list[bool]()

    class Sleeps(Lists):
        async def decide(self, state: Names) -> Decision:
            asleep.append(True)
            await anyio.sleep_forever()
            raise AssertionError

    async def main() -> None:
        async with cancelled_when(lambda: asleep):
            await Engine(Sleeps(), workspace=tmp_path).arun(Task(objective="t", env_spec=spec))

    anyio.run(main)
    assert events.count("open") == events.count("close") == 2


def test_criteria_are_evaluated_and_an_unevaluated_one_is_none(tmp_path: Path) -> None:
    criteria = [
        "final_result contains: note.txt",
        "final_result equals: else",
        "it feels right",
        "file exists: note.txt",
    ]
    env = {"type": "host", "config": {"workspace": str(tmp_path)}}
    result = Engine(Lists()).run(Task(objective="t", env_spec=env, success_criteria=criteria))
    assert [c.passed for c in result.task_result.criteria] == [True, False, None, True]
    assert result.status == RunStatus.completed
    assert not result.task_result.success
    assert result.task_result.reason
    assert result.trace.end["task_result"]["criteria"][2]["passed"] is None
