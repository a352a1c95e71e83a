"""SIGKILL of workers and of the driver at random moments, then the same command again: each task ends exactly once.

`REFOLD_SET_KILLS=30` tries so many rounds, and `REFOLD_SET_TASKS=500` tasks in each.
"""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from places import ROOT
from set_checks import STEPS, check, lines

ROUNDS = int(os.environ.get("REFOLD_SET_KILLS", "1"))
TASKS = int(os.environ.get("REFOLD_SET_TASKS", "16"))
KILLS = 1 if ROUNDS == 1 else 3


def started(folder: Path, executor: str = "local") -> "subprocess.Popen[bytes]":
    """Start the command, as a process with workers of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "helpers"), str(ROOT)])}
    command = [sys.executable, "-m", "toys.counting", str(folder), str(TASKS), "2", executor]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed(folder: Path, chance: random.Random) -> None:
    """Run the command; kill one of its workers at a random moment, and later the driver."""
    driver = started(folder)
    known: list[psutil.Process] = []

    def until(more: int) -> bool:
        """Wait for so many further calls; False if the driver has ended before."""
        enough = lines(folder) + more
        while lines(folder) < enough and driver.poll() is None:
            known.extend(each for each in psutil.Process(driver.pid).children() if each not in known)
            time.sleep(0.01)
        return driver.poll() is None

    most = max(2, (TASKS * STEPS - lines(folder)) // 4)
    try:
        if until(chance.randrange(1, most)) and chance.random() < 0.7:
            workers = [each for each in known if each.is_running() and "spawn_main" in " ".join(each.cmdline())]
            chance.choice(workers).kill()
        until(chance.randrange(1, most))
    finally:
        driver.kill()
        driver.communicate(timeout=300)
    _, alive = psutil.wait_procs(known, timeout=250)
    assert not alive, "workers outlive their driver"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_task_ends_once_through_kills_of_workers_and_of_the_driver(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    for _ in range(KILLS):
        killed(tmp_path, chance)
    driver = started(tmp_path)
    said, problems = driver.communicate(timeout=600)
    assert driver.returncode == 0, problems.decode()
    assert b"interrupted=False" in said
    check(tmp_path, TASKS)
