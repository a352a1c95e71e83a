"""An Agent's process is killed with SIGKILL wherever its trace has got to; the run goes on to the same trajectory."""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chats import chat_problems
from crash_lab import agent_run, team_run, typed_run
from crash_lab.agent_run import STEPS, USAGE, agent_on
from crash_lab.fork_server import ForkServer
from crash_lab.world import trace_of, written
from typed_cities import City

from refold import Engine, Task, Trace
from refold.modules.agent import Trajectory, Usage
from refold.modules.agent.events import AgentEnd
from refold.traces import family

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]
KILLS = int(os.environ.get("REFOLD_KILLS", "3"))


def events_of(trajectory: Trajectory[Any]) -> list[Any]:
    documents = [event.to_dict() for event in trajectory.events]
    volatile = ("timestamp", "agent_id", "params")
    return [{name: value for name, value in doc.items() if name not in volatile} for doc in documents]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(agent_run) as server:
        yield server


@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_agent_goes_on_to_the_same_trajectory(tmp_path: Path, server: ForkServer) -> None:
    whole = await agent_on(tmp_path / "whole").run("work")
    assert whole.trace is not None
    assert whole.trace.path is not None
    assert whole.usage == Usage.total([USAGE] * (STEPS + 1))
    length = written(tmp_path / "whole")
    sizes = random.Random(KILLS).sample(range(1, length), KILLS)
    for i, size in enumerate(sizes):
        folder = tmp_path / str(i)
        folder.mkdir()
        server.kill_after(size, "start", folder)
        path = trace_of(folder)
        agent = agent_on(folder)
        resumed = await agent.resume(path)
        assert events_of(resumed) == events_of(whole), f"killed at {size} of {length} bytes"
        assert resumed.usage == whole.usage
        assert chat_problems(resumed.messages) == []
        end = resumed.events[-1]
        assert isinstance(end, AgentEnd)
        assert end.stop_reason == "finished"
        assert await agent.make_engine().averify(Trace.load(path)) == []


@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_typed_run_goes_on_to_the_same_output(tmp_path: Path) -> None:
    whole = await typed_run.agent_on(tmp_path / "whole").run("work")
    assert whole.output == City(name="Paris", people=2)
    length = written(tmp_path / "whole")
    with ForkServer(typed_run) as server:
        for size in random.Random(KILLS).sample(range(1, length), KILLS):
            folder = tmp_path / str(size)
            folder.mkdir()
            server.kill_after(size, "start", folder)
            agent = typed_run.agent_on(folder)
            resumed = await agent.resume(trace_of(folder))
            assert resumed.output == whole.output, f"killed at {size} of {length} bytes"
            assert events_of(resumed) == events_of(whole)
            assert await agent.make_engine().averify(resumed.trace) == []


@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_run_with_agents_as_tools_and_handoffs_goes_on_to_the_same_trajectory(tmp_path: Path) -> None:
    whole = await team_run.agent_on(tmp_path / "whole").run("work")
    assert whole.answer == "All is paid."
    length = written(tmp_path / "whole")
    with ForkServer(team_run) as server:
        for size in random.Random(KILLS).sample(range(1, length), KILLS):
            folder = tmp_path / str(size)
            folder.mkdir()
            server.kill_after(size, "start", folder)
            agent = team_run.agent_on(folder)
            resumed = await agent.resume(trace_of(folder))
            assert events_of(resumed) == events_of(whole), f"killed at {size} of {length} bytes"
            assert await agent.make_engine().averify(resumed.trace) == []
            assert len(family(resumed.trace).run.calls) == 2
            for kin in family(resumed.trace).run.calls:
                child = resumed.trace.relative(kin.run_id)
                module = agent.module().child_module("clerk", Task.from_dict(child.header["task"]))
                assert module is not None
                assert await Engine(module).averify(child) == []
