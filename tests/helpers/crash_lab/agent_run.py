"""An Agent whose model is asked again where it fails, and whose tools may run twice."""

from pathlib import Path
from typing import Any

import anyio

from crash_lab.fork_server import serve
from refold import effect
from refold.modules.agent import Agent, FunctionGenerator, Message, ToolCall, Usage, tool
from refold.modules.agent.generators import Generation, RateLimitedError
from refold.modules.agent.generators.request_context import generation_number

STEPS = 12
USAGE = Usage(input_tokens=2, output_tokens=1, total_tokens=3, cost_usd=0.5)


@tool
@effect(idempotent=True)
async def slow(n: int) -> str:
    """Takes a moment."""
    await anyio.sleep(0.005)
    return f"did {n} " + "x" * 500


@tool
@effect(idempotent=True)
def sync(n: int) -> int:
    """Fails for every third number."""
    return 6 // (n % 3)


async def answer(messages: Any, params: Any) -> Any:
    """What the model says depends on the conversation, and on how often it was asked."""
    await anyio.sleep(0.002)
    turn = sum(message.role == "assistant" for message in messages)
    if turn == STEPS:
        return Generation.from_text("done", usage=USAGE)
    if turn == generation_number() == 3:
        return RateLimitedError("wait", retry_after=0.0)
    calls = [ToolCall.of(f"c{turn}_{i}", name, {"n": turn}) for i, name in enumerate(["slow", "sync", "slow", "gone"])]
    return Generation(message=Message("assistant", f"turn {turn}", tool_calls=calls), usage=USAGE)


def agent_on(folder: Path) -> Agent:
    """The agent, its traces in a folder below."""
    options: Any = {"traces": folder / "runs", "seed": 5}
    return Agent(
        name="k", model=FunctionGenerator(answer), tools=[slow, sync], engine=options, backoff_base_factor=0.001
    )


if __name__ == "__main__":
    serve({"start": lambda folder, seed: anyio.run(agent_on(folder).run, "work")})
