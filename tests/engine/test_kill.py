"""Rule 6: kill a run with SIGKILL at random moments, and resume it to the same final state; what ended ran once."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from dying import written

from refold import Trace
from refold.errors import TraceNotFoundError

sys.path.insert(0, str(Path(__file__).parent))
crashing: Any = import_module("crashing")

ROUNDS = int(os.environ.get("REFOLD_KILLS", "12"))
SCRIPT = Path(crashing.__file__)


def started(mode: str, folder: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), mode, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def kill_after(size: float, mode: str, folder: Path, seconds: float = 0.0) -> int:
    """Kills an attempt so long after it has written so many bytes, unless it is done; gives its exit code."""
    enough = written(folder) + size
    process = started(mode, folder)
    while written(folder) < enough and process.poll() is None:
        time.sleep(0.0005)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = crashing.engine(folder).run(crashing.task(folder))
    assert result.error is None
    return {**result.state.to_dict(), "folder": ""}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many bytes a run writes that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    crashing.engine(folder).run(crashing.task(folder))
    return written(folder)


def test_kills_come_while_there_is_something_to_kill(tmp_path: Path, whole: int) -> None:
    codes = []
    for part in range(10):  # a busy machine may let a run end before it is killed
        folder = tmp_path / str(part)
        folder.mkdir()
        codes.append(kill_after(whole / 3, "start", folder))
        if codes[-1] == -signal.SIGKILL:
            assert written(folder) >= whole / 3
            return
    raise AssertionError(codes)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_is_resumed_to_the_same_state(
    seed: int, tmp_path: Path, undisturbed: dict[str, object], whole: int
) -> None:
    chance = random.Random(seed)
    kill_after(whole * chance.uniform(0, 0.9), "start", tmp_path, chance.uniform(0, 0.003))
    for _ in range(chance.randrange(2)):
        if list((tmp_path / "runs").glob("*.trace.jsonl")):
            kill_after(whole * chance.uniform(0, 0.6), "resume", tmp_path, chance.uniform(0, 0.003))
    paths = list((tmp_path / "runs").glob("*.trace.jsonl"))
    if not paths or not Trace.load(paths[0]).size:
        return  # killed before the header: there was no run yet
    result = crashing.settle(tmp_path)
    assert result.error is None
    assert {**result.state.to_dict(), "folder": ""} == undisturbed
    result.trace.check()
    assert crashing.engine(tmp_path).verify(result.trace) == []
    calls = Counter((tmp_path / "world.txt").read_text().splitlines())
    assert all(count == 1 for line, count in calls.items() if line.startswith("once"))
    assert sum(1 for line in calls if line.startswith("once")) == crashing.STEPS + crashing.STEPS // 2
    again = crashing.engine(tmp_path).resume(paths[0])
    assert again.trace.data == result.trace.data, "recovering twice gives what recovering once gives"


def test_a_trace_that_never_began_says_so(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFoundError):
        crashing.engine(tmp_path).resume(tmp_path / "nothing.trace.jsonl")
