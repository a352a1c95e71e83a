"""An Agent with two sub-agents that have tools is killed at random moments, and resumed to the same trajectory."""

import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import spawning
from dying import written
from test_wait_kills import Nursery

from refold import Engine, Task, Trace, family
from refold.modules.agent import Trajectory
from refold.modules.agent.subagent import SubAgentToolset

ROUNDS = int(os.environ.get("REFOLD_KILLS", "8"))


class Spawners(Nursery):
    def __init__(self) -> None:
        command = [sys.executable, spawning.__file__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.codes: dict[int, int] = {}


@pytest.fixture(scope="module")
def spawners() -> Iterator[Spawners]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    spawners = Spawners()
    yield spawners
    spawners.process.stdin.close()  # type: ignore[union-attr]
    spawners.process.wait(30)
    spawners.process.stdout.close()  # type: ignore[union-attr]


def told(trajectory: Trajectory) -> list[Any]:
    """The conversations of the parent and of its sub-agents; their labels depend on the task's inputs, the folder."""
    assert trajectory.trace is not None
    runs = [trajectory.trace, *children(trajectory.trace)]
    bodies = [[(m["role"], m["body"], m["tool_calls"]) for m in run.final_state["messages"]] for run in runs]
    texts = [re.sub(r"0\.test-[0-9a-f]{10}", "its label", str(body)) for body in bodies]
    return [texts[0], *sorted(texts[1:]), trajectory.usage.total_tokens]


def children(trace: Trace) -> list[Trace]:
    return [trace.relative(kin.run_id) for kin in family(trace).run.calls]


def once(folder: Path) -> Counter[str]:
    """How often each call was made that may be made once; each of them has a key of its own."""
    path = folder / "world.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    calls = Counter(line for line in lines if line.startswith("once"))
    assert set(calls.values()) <= {1}
    return Counter(line.split()[0] for line in calls)


@pytest.fixture(scope="module", params=[False, True], ids=["at_once", "beside"])
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bool, list[Any], Counter[str], int]:
    """Whether they work beside, what is told of them, how often what was done, and how many bytes were written."""
    beside, folder = request.param, tmp_path_factory.mktemp("undisturbed")
    trajectory = anyio.run(spawning.agent(folder, beside=beside).run, spawning.task(folder))
    assert sum(once(folder).values()) == 5
    return beside, told(trajectory), once(folder), written(folder)


def test_kills_come_while_there_is_something_to_kill(
    tmp_path: Path, spawners: Spawners, undisturbed: tuple[bool, list[Any], Counter[str], int]
) -> None:
    mode = "start_beside" if undisturbed[0] else "start"
    codes = []
    for part in range(20):  # a busy machine may let a run end before it is killed
        folder = tmp_path / str(part)
        folder.mkdir()
        codes.append(spawners.kill_after(undisturbed[3] * (part % 5 + 1) / 8, mode, folder, 1))
        if codes.count(-signal.SIGKILL) == 2:
            return
    raise AssertionError(codes)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_an_agent_killed_with_its_sub_agents_is_resumed_to_the_same_trajectory(
    seed: int, tmp_path: Path, spawners: Spawners, undisturbed: tuple[bool, list[Any], Counter[str], int]
) -> None:
    chance, beside = random.Random(seed), undisturbed[0]
    how = "_beside" if beside else ""
    whole = undisturbed[3]
    spawners.kill_after(whole * chance.uniform(0, 0.8), f"start{how}", tmp_path, seed, chance.uniform(0, 0.003))
    for _ in range(chance.randint(0, 3)):
        if list((tmp_path / "runs").glob("*.trace.jsonl")):
            more, each = whole * chance.uniform(0, 0.4), chance.randrange(1 << 30)
            spawners.kill_after(more, f"resume{how}", tmp_path, each, chance.uniform(0, 0.003))
    paths = list((tmp_path / "runs").glob("*.trace.jsonl"))
    if not paths or not Trace.load(paths[0]).size:
        return  # killed before the header: there was no run yet

    async def settled() -> Trajectory:
        trajectory: Trajectory = await spawning.settle(tmp_path, chance, beside)
        agent = spawning.agent(tmp_path, beside=beside)
        assert trajectory.trace is not None
        assert await agent.make_engine().averify(trajectory.trace) == []
        (toolset,) = [item for item in agent.tools if isinstance(item, SubAgentToolset)]
        for child in children(trajectory.trace):
            child.check()
            module = toolset.child_module("", Task.from_dict(child.header["task"]))
            assert module is not None
            assert await Engine(module).averify(child) == []
        return trajectory

    assert (beside, told(anyio.run(settled)), once(tmp_path), whole) == undisturbed
