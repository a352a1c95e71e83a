"""An Agent that opens dependencies, and has a typed output, whose first answers are refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from typed_cities import GOOD, City

from crash_lab.fork_server import serve
from refold import effect
from refold.modules.agent import Agent, Output, RunContext, ScriptedGenerator, tool


@asynccontextmanager
async def opened() -> AsyncIterator[str]:
    """Open what the tool needs."""
    await anyio.lowlevel.checkpoint()
    yield "the city's people"


@tool
@effect(idempotent=True)
async def count(run: RunContext[str], n: int) -> str:
    """Counts."""
    await anyio.sleep(0.002)
    return f"{n} of {run.deps} " + "x" * 300


def agent_on(folder: Path, mode: Any = "tool") -> Agent[City, str | None]:
    """The agent, its traces in a folder below."""
    bad = [{"calls": [{"final_result": {"name": "Paris", "people": -n}}]} for n in range(3)]
    looks = [{"calls": [{"count": {"n": n}}, {"count": {"n": n + 1}}]} for n in range(4)]
    script = [answer for pair in zip(looks, [*bad, "Hm."], strict=True) for answer in pair]
    return Agent(
        name="typed",
        model=ScriptedGenerator([*script, {"calls": [{"count": {"n": 9}}, {"final_result": GOOD}]}]),
        tools=[count],
        deps=opened,
        output_type=Output(City, mode=mode, retries=4),
        engine={"traces": folder / "runs", "seed": 5},
    )


async def run_on(folder: Path) -> None:
    """Run the agent."""
    await agent_on(folder).run("work")


if __name__ == "__main__":
    serve({"start": lambda folder, seed: anyio.run(run_on, folder)})
