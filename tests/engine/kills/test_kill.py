"""Rule 6: kill a run with SIGKILL at random moments, and resume it to the same final state; what ended ran once."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_lab import simple_run
from crash_lab.fork_server import ForkServer
from crash_lab.world import trace_of, world_lines, written

from refold.errors import TraceNotFoundError

ROUNDS = int(os.environ.get("REFOLD_KILLS", "6"))


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(simple_run) as server:
        yield server


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = simple_run.engine(folder).run(simple_run.task(folder))
    assert result.error is None
    return {**result.state.to_dict(), "folder": ""}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run writes that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    simple_run.engine(folder).run(simple_run.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, server: ForkServer, whole: int) -> None:
    server.assert_kills_hit(tmp_path, "start", whole)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_is_resumed_to_the_same_state(
    seed: int, tmp_path: Path, server: ForkServer, undisturbed: dict[str, object], whole: int
) -> None:
    chance = random.Random(seed)
    if not server.kill_some(tmp_path, chance, whole, first=0.9, then=0.6, most=1):
        return  # killed before the header: there was no run yet
    result = simple_run.settle(tmp_path)
    assert result.error is None
    assert {**result.state.to_dict(), "folder": ""} == undisturbed
    result.trace.check()
    assert simple_run.engine(tmp_path).verify(result.trace) == []
    calls = Counter(world_lines(tmp_path))
    assert all(count == 1 for line, count in calls.items() if line.startswith("once"))
    assert sum(1 for line in calls if line.startswith("once")) == simple_run.STEPS + simple_run.STEPS // 2
    again = simple_run.engine(tmp_path).resume(trace_of(tmp_path))
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


def test_a_trace_that_never_began_says_so(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFoundError):
        simple_run.engine(tmp_path).resume(tmp_path / "nothing.trace.jsonl")
