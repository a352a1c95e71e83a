"""The set of the laboratory: each step awaits an effect that leaves marks."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio

from refold import Action, AgentModule, Decision, Observation, StateSchema, Task, effect, perform
from refold.modules.run_sets import Executor, Local, SetResult, run_set

from .marks import mark

SET = "lab"
KEYS = "t{}"


@dataclass(frozen=True)
class Work:
    """One set: where it is, how many tasks and steps it has, and what runs it."""

    where: str
    marks: str
    tasks: int
    steps: int
    executor: str = "local"
    address: str | None = None
    concurrency: int = 8
    lease_seconds: float = 2.0
    pace: float = 0.001
    """How long effects take, in seconds, times a number from 0 to 6."""

    def write(self, path: Path) -> None:
        """Write the work for a command."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Work":
        """Read the work that a command is to do."""
        return cls(**json.loads(path.read_text()))


class Marks(StateSchema):
    """The sum over the steps so far."""

    marks: str = ""
    steps: int = 1
    seconds: float = 0.0
    total: int = 0


@effect(idempotent=True)
async def leave_marks(marks: str, task: str, step: int, seconds: float) -> dict[str, Any]:
    """Mark the begin and the end of this execution; return its name, a number, and what it cost."""
    name = f"{os.getpid()}-{os.urandom(6).hex()}"
    mark(marks, "began", task, step, name)
    await anyio.sleep(seconds)
    mark(marks, "ended", task, step, name)
    return {"name": name, "number": step, "usage": {"tokens_in": 10 + step, "tokens_out": step, "cost": 0.001 * step}}


class Marking(AgentModule[Marks]):
    """Sums up the numbers of its steps."""

    def init_state(self, task: str, marks: str, steps: int, seconds: float = 0.0) -> Marks:
        return Marks(marks=marks, steps=steps, seconds=seconds)

    async def decide(self, state: Marks) -> Decision:
        if state.current_step == state.steps:
            return Decision.final(f"{state.task}: {state.total}")
        return Decision.act(Action("mark"))

    async def act(self, state: Marks, decision: Decision) -> Observation:
        done = await perform(leave_marks, state.marks, state.task, state.current_step, state.seconds)
        return Observation(value=done["number"])

    def reduce(self, state: Marks, decision: Decision, observation: Observation) -> None:
        if decision.mode != "final":
            state.total += observation.value


def executor_of(work: Work) -> Executor | str:
    """Return the executor that a work names."""
    if work.executor == "ray":
        from refold.modules.run_sets.executors.ray import Ray

        return Ray(min(4, work.concurrency), address=work.address)
    return Local(2) if work.executor == "local" else work.executor


def run(work: Work, executor: Executor | str | None = None) -> SetResult:
    """Run the set, or what is left of it."""
    tasks = [
        Task(
            id=KEYS.format(number),
            objective=KEYS.format(number),
            inputs={"marks": work.marks, "steps": work.steps, "seconds": work.pace * (number % 7)},
        )
        for number in range(work.tasks)
    ]
    return run_set(
        Marking(),
        tasks,
        work.where,
        name=SET,
        executor=executor or executor_of(work),
        limits={"concurrency": work.concurrency, "attempts": 50},
        lease_seconds=work.lease_seconds,
    )
