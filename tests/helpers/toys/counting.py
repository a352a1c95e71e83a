"""A module for sets of runs: its steps await an effect that writes a line to a file, so that calls can be counted."""

import os
from pathlib import Path

import anyio

from refold import Action, AgentModule, Decision, Observation, StateSchema, ask, effect, perform


class Count(StateSchema):
    """What the task asked for, and the sum so far."""

    log: str = ""
    steps: int = 3
    seconds: float = 0.0
    fails: str = ""
    waits: bool = False
    total: int = 0


@effect(idempotent=True)
async def note(log: str, task: str, number: int, seconds: float) -> int:
    """Wait, and note the call in the log; return the number."""
    await anyio.sleep(seconds)
    write(log, f"{task} {number}")
    return number


@effect(idempotent=True)
async def trip(log: str, task: str, kind: str) -> None:
    """Fail as `kind` says: "logic" always, "network" the first two times, "always" as the network does."""
    tries = write(log, f"{task} {kind}")
    if kind == "logic":
        raise ValueError("2 and 2 is 5")
    if kind == "always" or tries <= 2:
        raise ConnectionError("nothing answers")


def write(log: str, line: str) -> int:
    """Append a line and return how often the log has it."""
    with open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a") as file:
        file.write(line + "\n")
    return Path(log).read_text().splitlines().count(line)


class Counting(AgentModule[Count]):
    """Sums up the numbers of its steps."""

    def init_state(
        self, task: str, log: str, steps: int = 3, seconds: float = 0.0, fails: str = "", waits: bool = False
    ) -> Count:
        return Count(log=log, steps=steps, seconds=seconds, fails=fails, waits=waits)

    async def decide(self, state: Count) -> Decision:
        if state.waits and state.current_step == 0:
            await ask("go on?")
        if state.current_step == state.steps:
            return Decision.final(str(state.total))
        return Decision.act(Action("count"))

    async def act(self, state: Count, decision: Decision) -> Observation:
        if state.fails and state.current_step == 1:
            await perform(trip, state.log, state.task, state.fails)
        number = await perform(note, state.log, state.task, state.current_step, state.seconds)
        return Observation(value=number)

    def reduce(self, state: Count, decision: Decision, observation: Observation) -> None:
        if decision.mode != "final":
            state.total += observation.value
