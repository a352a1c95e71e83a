"""A round: the set undisturbed, then the set with kills, until it is done, and the verdict."""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from refold.modules.run_sets import Local

from .marks import ended
from .servers import Nodes, Place
from .verdict import figures, problems
from .victims import DRIVER, kill, kinds, workers
from .work import Work, run

PATIENCE = 600.0
"""Seconds for which a command may work without an execution that ends, before the round fails: it hangs."""
_LOOK = 0.01
_EARLY = 0.15
"""The share of kills that come at a drawn moment of the command's start."""


@dataclass
class Round:
    """What happened in a round."""

    seed: int
    kills: list[str] = field(default_factory=list)
    commands: int = 0
    gave_up: list[str] = field(default_factory=list)
    """What commands said that ended by themselves before the set was done."""
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether everything holds."""
        return not self.problems

    def __str__(self) -> str:
        gave_up = f", {len(self.gave_up)} ended by themselves" if self.gave_up else ""
        verdict = "ok" if self.is_good else f"FAILED: {'; '.join(self.problems[:3])}"
        return (
            f"seed {self.seed}: {len(self.kills)} kills ({', '.join(self.kills)}), {self.commands} commands{gave_up}, "
            f"{self.seconds:.0f} s: {verdict}"
        )


def play(
    seed: int,
    folder: Path,
    place: Place,
    *,
    executor: str = "local",
    tasks: int,
    steps: int,
    nodes: Nodes | None = None,
    only: Sequence[str] = (),
    kills: int | None = None,
    pace: float = 0.001,
) -> Round:
    """Play a round in a new folder; `only` names the kinds of victims, `kills` their number, `pace` see `Work`."""
    chance = random.Random(seed)
    played, began = Round(seed), time.monotonic()
    apart = folder / "undisturbed"
    apart.mkdir(parents=True)
    work = Work(
        where=place.address(folder),
        marks=str(folder / "marks"),
        tasks=tasks,
        steps=steps,
        executor=executor,
        address=None if nodes is None else nodes.address,
        pace=pace,
    )
    run(replace(work, where=str(apart / "set"), marks=str(apart / "marks")), Local())
    undisturbed = figures(str(apart / "set"))
    shutil.rmtree(apart)
    work.write(folder / "work.json")
    possible = [kind for kind in kinds(executor, place) if not only or kind in only]
    count = chance.randrange(2, 6) if kills is None else kills
    # Each kind once, as far as there is room, and then drawn ones.
    plan = chance.sample(possible, min(count, len(possible)))
    plan += [chance.choice(possible) for _ in range(count - len(plan))]
    chance.shuffle(plan)
    _Disturbed(work, folder, place, nodes, chance, played).until_done(plan)
    if not played.problems:
        played.problems = problems(work, undisturbed)
    played.seconds = time.monotonic() - began
    return played


class _Disturbed:
    """The set's commands, one after another, and the kills."""

    def __init__(
        self, work: Work, folder: Path, place: Place, nodes: Nodes | None, chance: random.Random, played: Round
    ) -> None:
        self._work = work
        self._folder = folder
        self._place = place
        self._nodes = nodes
        self._chance = chance
        self._played = played
        self._marks = Path(work.marks)
        self._seen: set[psutil.Process] = set()

    def until_done(self, plan: Sequence[str]) -> None:
        """Start the command again and again until the set is done; kill what is planned meanwhile."""
        total, left = self._work.tasks * self._work.steps, list(plan)
        driver = self._started()
        try:
            while True:
                early = self._chance.random() < _EARLY
                pause = self._chance.random() * 2.0 if early else 0.0
                share = max(1, (total - ended(self._marks)) // (len(left) + 1))
                target = ended(self._marks) + (0 if early else self._chance.randrange(share))
                if left and self._reached(driver, target, pause):
                    kind = left[0]
                    at = ended(self._marks)
                    killed = kill(kind, psutil.Process(driver.pid), self._place, self._nodes, self._chance)
                    if killed is not None:
                        self._played.kills.append(f"{killed} at {at}")
                        left.pop(0)
                    if kind != DRIVER:
                        continue
                if not left and driver.poll() is None and not self._ended(driver):
                    return
                if (code := self._code(driver)) == 0:
                    break
                if code > 0:
                    self._played.gave_up.append(self._said())
                    if not self._may_give_up(code):
                        self._played.problems.append(f"the command ended with {code}: {self._said()}")
                        return
                driver = self._started()
        finally:
            driver.kill()
            driver.wait()
        self._check_processes()

    def _may_give_up(self, code: int) -> bool:
        """Return whether a command may end by itself: only if the server of its store was lost."""
        return code == 1 and any(each.startswith("server") for each in self._played.kills)

    def _started(self) -> "subprocess.Popen[bytes]":
        self._played.commands += 1
        with open(self._folder / f"said-{self._played.commands}", "wb") as said:
            command = [sys.executable, "-m", "set_lab.command", str(self._folder / "work.json")]
            return subprocess.Popen(command, cwd=self._folder, stdout=said, stderr=said, env=os.environ)

    def _said(self) -> str:
        """Return the last line that the last command wrote."""
        text = (self._folder / f"said-{self._played.commands}").read_text(errors="replace").strip()
        return text.splitlines()[-1][:300] if text else "nothing"

    def _reached(self, driver: "subprocess.Popen[bytes]", target: int, pause: float) -> bool:
        """Wait until so many executions have ended, and a while more; False if the command has ended before."""
        end = time.monotonic() + pause
        last, changed = -1, time.monotonic()
        while driver.poll() is None:
            if (now := ended(self._marks)) != last:
                last, changed = now, time.monotonic()
                self._look(driver)
            if (now >= target and time.monotonic() >= end) or time.monotonic() - changed > PATIENCE:
                self._look(driver)
                return True
            time.sleep(_LOOK)
        return False

    def _ended(self, driver: "subprocess.Popen[bytes]") -> bool:
        """Wait for the command's end; False, and a problem, if it hangs."""
        last, changed = -1, time.monotonic()
        while driver.poll() is None:
            self._look(driver)
            if (now := ended(self._marks)) != last:
                last, changed = now, time.monotonic()
            if time.monotonic() - changed > PATIENCE:
                self._played.problems.append(f"the command hangs: {now} executions have ended")
                return False
            time.sleep(0.05)
        return True

    def _code(self, driver: "subprocess.Popen[bytes]") -> int:
        return driver.wait(PATIENCE)

    def _look(self, driver: "subprocess.Popen[bytes]") -> None:
        """Remember the processes that work, so that none of them outlives the set.

        To look is to read the state of every process of the machine.
        """
        try:
            self._seen.update(workers(psutil.Process(driver.pid), self._nodes))
        except psutil.NoSuchProcess:
            return

    def _check_processes(self) -> None:
        _, alive = psutil.wait_procs(self._seen, timeout=PATIENCE)
        if alive:
            self._played.problems.append(f"{len(alive)} workers outlive their set: {[each.pid for each in alive]}")
