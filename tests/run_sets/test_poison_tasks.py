"""A task that kills its process is found and named, with the signal or exit code, and its neighbors finish."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

MODULE = """
import os, signal
import anyio
from refold import AgentModule, Decision, StateSchema
ENDS = {5: lambda: os._exit(7), 11: lambda: os.kill(os.getpid(), signal.SIGKILL), 13: lambda: os._exit(0)}


class Poison(AgentModule[StateSchema]):
    def init_state(self, task):
        return StateSchema()

    async def decide(self, state):
        await anyio.sleep(0.01)  # so that others run beside it
        ENDS.get(int(state.task), lambda: None)()
        return Decision.final(state.task)

    def reduce(self, state, decision, observation):
        pass
"""
SCRIPT = """
import json, sys
from refold import Task
from refold.modules.run_sets import run_set
from refold.modules.run_sets.executors import Local
from refold.modules.run_sets.table import all_rows
from refold.traces.stores import open_store
import poison
if __name__ == "__main__":
    def unsendable():
        class Local(poison.Poison):
            pass
        return Local()
    executor, where = sys.argv[1:]
    if executor == "ray":
        from refold.modules.run_sets.executors.ray import Ray
        runner = Ray(2)
    else:
        runner = Local(2 if executor == "processes" else 1)
    tasks = [Task(id=f"t{i}", objective=str(i)) for i in range(16)]
    module = unsendable() if executor == "unsendable" else poison.Poison()
    run_set(module, tasks, where, executor=runner, limits={"concurrency": 8}, name="s", lease_seconds=1)
    rows = all_rows(open_store(where, "read").tasks("s"))
    print(json.dumps({row.key: [row.status, row.figures.error, row.attempts] for row in rows}))
"""
NAMED = {
    "t5": "the task ended its process, in which it ran alone: it ended with exit code 7",
    "t11": "the task ended its process, in which it ran alone: it was ended by SIGKILL (signal 9), which the system "
    "sends when memory runs out",
    "t13": "the task ended its process, in which it ran alone: it ended with exit code 0",
}
TWICE = "the task ended its process 2 times, in which it ran alone"


def command(folder: Path, executor: str) -> dict[str, Any] | int:
    """What the set has, or the code of a command that a task has killed."""
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    with TemporaryDirectory(prefix="r") as short:  # Ray's sockets are there
        done = subprocess.run(
            [sys.executable, str(folder / "script.py"), executor, str(folder / "set")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, "RAY_TMPDIR": short},
            timeout=600,
            check=False,
        )
    lines = done.stdout.splitlines()
    found: dict[str, Any] | None = json.loads(lines[-1]) if done.returncode == 0 and lines else None
    return done.returncode if found is None else found


@pytest.mark.parametrize(
    ("executor", "deaths"),
    [
        ("processes", 0),
        ("threads", 1),  # the command itself dies of the first one; the next one runs all tasks apart
        ("unsendable", 9),
        pytest.param(
            "ray",
            0,
            marks=[
                pytest.mark.slow,
                pytest.mark.timeout(900),
                pytest.mark.skipif(find_spec("ray") is None, reason="the extra refold[ray] is not installed"),
            ],
        ),
    ],
)
def test_only_the_tasks_that_kill_their_process_have_an_error(executor: str, deaths: int, tmp_path: Path) -> None:
    (tmp_path / "poison.py").write_text(MODULE)
    (tmp_path / "script.py").write_text(SCRIPT)
    for death in range(deaths + 1):
        found = command(tmp_path, executor)
        if isinstance(found, dict):
            break
        assert death < deaths, f"the command died again: {found}"
    assert isinstance(found, dict)
    named = dict.fromkeys(NAMED, TWICE) if executor == "unsendable" else NAMED
    assert {key: error for key, (status, error, _) in found.items() if status == "errored"} == named
    assert sum(status == "completed" for status, _, _ in found.values()) == 13
    again = command(tmp_path, executor)  # the command knows who is at fault, and does not die of it
    assert isinstance(again, dict)
    assert {key: error for key, (status, error, _) in again.items() if status == "errored"} == named


PAYING = """
import os, sys
from pathlib import Path
import anyio
from refold import AgentModule, Decision, StateSchema, effect, perform
from refold.engine import CallUsage
from refold.modules.rate_limits import request_slot

@effect(idempotent=True)
async def pay() -> bool:
    first = Path(__file__).with_name("first")
    if not first.exists():
        first.touch()
        os._exit(7)
    async with request_slot(at_most=CallUsage(cost=2.0)) as slot:
        slot.used(1, 1.0)
    return True

class Paying(AgentModule[StateSchema]):
    def init_state(self, task):
        return StateSchema()

    async def decide(self, state):
        return Decision.final(str(await perform(pay)))

    def reduce(self, state, decision, observation):
        pass
"""
PAID_ALONE = """
import sys
from refold.modules.run_sets import run_set
import paying
told = run_set(paying.Paying(), ["pay"], sys.argv[1], limits={"max_cost_usd": 1.5}, lease_seconds=1)
print(told.is_out_of_budget, told.counts, *told.notes)
"""


def test_a_task_in_its_own_process_for_which_there_is_no_money_stops_the_set(tmp_path: Path) -> None:
    (tmp_path / "paying.py").write_text(PAYING)
    (tmp_path / "script.py").write_text(PAID_ALONE)
    call = [sys.executable, "script.py", "set"]
    first, second = (subprocess.run(call, cwd=tmp_path, capture_output=True, text=True) for _ in range(2))
    assert first.returncode == 7
    assert second.stdout.startswith("True {'queued': 1}")
    assert "the next call may cost 2.0000" in second.stdout
