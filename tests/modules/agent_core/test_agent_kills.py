"""An Agent's process is killed with SIGKILL wherever its trace has got to; the run goes on to the same trajectory."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import killed_agent
import pytest
from killed_agent import STEPS, USAGE, agent_on

from refold import Trace
from refold.modules.agent import Trajectory, Usage, chat_problems
from refold.modules.agent.events import AgentEnd

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]
SCRIPT = Path(killed_agent.__file__)
KILLS = int(os.environ.get("REFOLD_KILLS", "3"))


def plain(trajectory: Trajectory) -> list[Any]:
    documents = [event.to_dict() for event in trajectory.events]
    volatile = ("timestamp", "agent_id", "params")
    return [{name: value for name, value in doc.items() if name not in volatile} for doc in documents]


def killed_at(folder: Path, size: int) -> Path:
    """The trace of a process that was killed once its trace had about so many bytes."""
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(folder)])
    try:
        while process.poll() is None:
            found = list(folder.glob("*.trace.jsonl"))
            if found and found[0].stat().st_size >= size:
                break
            time.sleep(0.001)
    finally:
        process.kill()
        process.wait()
    (path,) = folder.glob("*.trace.jsonl")
    return path


@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_agent_goes_on_to_the_same_trajectory(tmp_path: Path) -> None:
    whole = await agent_on(tmp_path / "whole").run("work")
    assert whole.trace is not None
    assert whole.trace.path is not None
    assert whole.usage == Usage.total([USAGE] * (STEPS + 1))
    length = whole.trace.path.stat().st_size
    sizes = random.Random(KILLS).sample(range(1, length), KILLS)
    for i, size in enumerate(sizes):
        folder = tmp_path / str(i)
        path = killed_at(folder, size)
        agent = agent_on(folder)
        resumed = await agent.resume(path)
        assert plain(resumed) == plain(whole), f"killed at {size} of {length} bytes"
        assert resumed.usage == whole.usage
        assert chat_problems(resumed.messages) == []
        end = resumed.events[-1]
        assert isinstance(end, AgentEnd)
        assert end.stop_reason == "finished"
        assert await agent.make_engine().averify(Trace.load(path)) == []
