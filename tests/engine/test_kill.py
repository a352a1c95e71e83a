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

from refold import Trace, TraceNotFoundError

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


def kill_after(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("undisturbed")
    result = crashing.engine(folder).run(crashing.task(folder))
    assert result.error is None
    return {**result.state.to_dict(), "folder": ""}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_is_resumed_to_the_same_state(seed: int, tmp_path: Path, undisturbed: dict[str, object]) -> None:
    chance = random.Random(seed)
    kill_after(started("start", tmp_path), chance.uniform(0.0, 0.25))
    for _ in range(chance.randrange(2)):
        if list((tmp_path / "runs").glob("*.trace.jsonl")):
            kill_after(started("resume", tmp_path), chance.uniform(0.0, 0.2))
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
