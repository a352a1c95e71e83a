"""An Agent that asks another as a tool, hands its conversation over, and gets it back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from crash_lab.fork_server import serve
from refold.modules.agent import Agent, FunctionGenerator, GenerateParams, Message, ToolCall, tool


@tool(idempotent=True)
async def check(number: int) -> str:
    """Checks an invoice."""
    await anyio.sleep(0.002)
    return f"invoice {number} is open " + "x" * 300


@tool(idempotent=True)
async def pay(number: int) -> str:
    """Pays an invoice."""
    await anyio.sleep(0.002)
    return f"{number} paid"


def scripted(name: str, *answers: Any) -> FunctionGenerator:
    """The n-th turn of the conversation gives the n-th answer: a text, or calls."""

    def answer(messages: Sequence[Message], params: GenerateParams) -> Any:
        said = answers[sum(message.role == "assistant" for message in messages)]
        return [ToolCall.of(id_, called, args) for id_, called, args in said] if isinstance(said, list) else said

    return FunctionGenerator(answer, model=name)


def agent_on(folder: Path) -> Agent[str, Any]:
    """The first agent, its traces in a folder below."""
    looks = [[("c", "check", {"number": n})] for n in (1, 2)]
    clerk = Agent(name="clerk", model=scripted("clerk", *looks, "Both are open."), tools=[check])
    pays = [[(f"p{n}", "pay", {"number": n})] for n in (1, 2)]
    theirs = scripted("big", None, None, *pays, [("t2", "transfer_to_desk", {})])
    refunds = Agent(name="refunds", model=theirs, tools=[pay], instructions="You pay.")
    asks = [(f"a{n}", "clerk", {"task": f"look {n}"}) for n in (1, 2)]
    ours = scripted("small", asks, [("t1", "transfer_to_refunds", {})], None, None, None, "All is paid.")
    engine: Any = {"traces": folder / "runs", "seed": 5}
    desk = Agent(name="desk", model=ours, tools=[clerk], handoffs=[refunds], engine=engine)
    refunds.handoffs.append(desk)
    return desk


async def run_on(folder: Path) -> None:
    """Run the agent."""
    await agent_on(folder).run("work")


if __name__ == "__main__":
    serve({"start": lambda folder, seed: anyio.run(run_on, folder)})
