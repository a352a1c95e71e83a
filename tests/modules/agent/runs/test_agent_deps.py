"""Dependencies of an Agent's tools: passed for each run, in no trace, and needed again only by what runs live."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from refold.modules.agent import Agent, RunContext, ScriptedGenerator, Toolset, tool, tool_method
from refold.modules.agent.tools.context import NoContextError
from refold.modules.evaluation import Evaluation, exact_match
from refold.modules.run_sets import arun_set
from refold.testing import check_resume
from refold.traces.errors import UsageError

pytestmark = pytest.mark.anyio


@dataclass
class Db:
    """A database with a secret in its address."""

    url: str = "db://hunter2"
    seen: list[str] = field(default_factory=list)


@tool
async def find(run: RunContext[Db], key: str) -> str:
    """Finds."""
    run.deps.seen.append(key)
    call = run.call.id if run.call is not None else None
    return f"{key} {run.state.current_step} {run.task.objective} {call}"


@tool
def optional(key: str, run: RunContext[Db | None]) -> str:
    """Works without."""
    return f"{key} {run.deps is None}"


class Desk(Toolset):
    """A desk."""

    @tool_method
    def file(self, run: RunContext[Db], paper: str) -> str:
        """Files."""
        return f"{paper} {len(run.deps.seen)}"


def save(run: RunContext[Db], key: str) -> list[str]:
    """Saves."""
    return [*run.deps.seen, key]


SCRIPT = [{"calls": [{"id": "a", "name": "find", "arguments": {"key": "x"}}]}, {"calls": [{"file": {"paper": "p"}}]}]
SAVE = {"calls": [{"save": {"key": "y"}}]}
ROWS = [{"input": "go", "target": "x"}]


def agent(*script: object, traces: Path | None = None) -> Agent[list[str]]:
    """An agent all of whose tools take a Db."""
    engine: Any = {} if traces is None else {"traces": traces}
    return Agent(name="desk", model=ScriptedGenerator(script), tools=[find, Desk()], output_type=save, engine=engine)


async def test_tools_and_output_functions_get_what_the_caller_passed() -> None:
    deps = Db()
    clerk = agent(*SCRIPT, SAVE)
    trajectory = await clerk.run("go", deps=deps)
    assert trajectory.output == ["x", "y"]
    assert [m.content for m in trajectory.messages if m.role == "tool"][:2] == ["x 0 go a", "p 1"]
    assert b"hunter2" not in trajectory.trace.file.data
    assert [list(each.parameters_schema["properties"]) for each in clerk.all_tools] == [["key"], ["paper"]]
    assert await clerk.make_engine().averify(trajectory.trace) == []


async def test_missing_dependencies_are_an_error_before_the_first_request() -> None:
    clerk = agent(SAVE)
    for work in (clerk.run("go"), clerk.resume("nowhere"), clerk.fork("nowhere")):
        with pytest.raises(UsageError, match=r"'desk' needs deps: the tool find takes RunContext\[Db\]"):
            await work
    with pytest.raises(UsageError, match="needs deps"):
        async with clerk.stream("go"):
            pass
    script = ScriptedGenerator([{"calls": [{"optional": {"key": "k"}}]}, "done"])
    assert (await Agent(name="free", model=script, tools=[optional]).run("go")).messages[2].content == "k True"
    with pytest.raises(NoContextError):
        await find(key="x")  # type: ignore[call-arg]


async def test_each_way_to_run_an_agent_refuses_missing_dependencies(tmp_path: Path) -> None:
    clerk = agent(SAVE)
    whole = await clerk.run("go", deps=Db())
    works: list[Callable[[], Awaitable[object]]] = [
        lambda: clerk.batch(["go"]),
        lambda: clerk.sample("go", 2),
        lambda: clerk.sample_forks(whole.trace, 2),
        lambda: clerk.make_engine().arun("go"),
        lambda: clerk.make_engine().afork(whole.trace, 0),
        lambda: arun_set(clerk, ["go"], tmp_path / "set"),
        lambda: Evaluation(task=clerk, dataset=ROWS, scorers=[exact_match()], folder=tmp_path / "eval").run(),
        lambda: Evaluation(task=clerk.task(), dataset=ROWS, scorers=[exact_match()]).run(),
    ]
    for work in works:
        with pytest.raises(UsageError, match=r"'desk' needs deps: the tool find takes RunContext\[Db\]"):
            await work()
    deps = Db(seen=["x"])
    assert (await arun_set(clerk.module(deps=deps), ["go"], tmp_path / "set")).counts == {"completed": 1}
    with_deps = Evaluation(
        task=clerk.module(deps=deps), dataset=ROWS, scorers=[exact_match()], folder=tmp_path / "eval"
    )
    assert [each.status for each in (await with_deps.run()).samples] == ["completed"]


async def test_a_resumed_and_a_forked_run_get_them_again(tmp_path: Path) -> None:
    whole = await agent(*SCRIPT, SAVE, traces=tmp_path).run("go", deps=Db())
    assert whole.trace.path is not None
    data = whole.trace.path.read_bytes()
    whole.trace.path.write_bytes(data[: data.rindex(b'{"kind":"decide"')])
    deps = Db(seen=["again"])
    assert (await agent(*SCRIPT, SAVE).resume(whole.trace.path, deps=deps)).output == ["again", "y"]
    assert (await agent(*SCRIPT, SAVE).fork(whole.trace.path, at=1, deps=deps)).output == ["again", "y"]
    async with agent(*SCRIPT, SAVE).stream("go", deps=Db()) as events:
        assert [event async for event in events]


def test_a_run_with_dependencies_can_be_cut_at_every_record() -> None:
    clerk = agent(*SCRIPT, SAVE)
    result = check_resume(lambda: clerk.module(deps=Db(seen=["x"])), "go", same=False, other_seed=False)
    assert result.status == "completed"
