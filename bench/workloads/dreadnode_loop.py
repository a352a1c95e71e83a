"""The Agent's loop in dreadnode; nothing of refold is imported.

`PYTHON dreadnode_loop.py STEPS REPEATS TEXT RESULT` prints dreadnode's version and the CPU seconds of each run as JSON.
"""

import asyncio
import json
import logging
import sys
from importlib import metadata
from time import process_time
from typing import Any

from dreadnode.agents import Agent  # type: ignore[import-not-found]
from dreadnode.agents.tools import tool  # type: ignore[import-not-found]
from dreadnode.generators.generator import (  # type: ignore[import-not-found]
    GeneratedMessage,
    GenerateParams,
    Generator,
    Usage,
)
from dreadnode.generators.message import Message  # type: ignore[import-not-found]

TEXT, RESULT = sys.argv[3], sys.argv[4]


class Scripted(Generator):  # type: ignore[misc]
    """Calls the tool in each step but the last, then answers."""

    steps: int
    asked: int = 0

    async def generate_messages(self, messages: Any, params: list[GenerateParams]) -> list[GeneratedMessage]:
        number, self.asked = self.asked, self.asked + 1
        if number + 1 >= self.steps:
            message, reason = Message(role="assistant", content="done"), "stop"
        else:
            function = {"name": "look", "arguments": json.dumps({"place": number})}
            calls = [{"id": f"call_{number}", "type": "function", "function": function}]
            message, reason = Message(role="assistant", content=TEXT, tool_calls=calls), "tool_calls"
        usage = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
        return [GeneratedMessage(message=message, stop_reason=reason, usage=usage)]

    async def supports_function_calling(self) -> bool:
        return True


@tool  # type: ignore[untyped-decorator]
async def look(place: int) -> str:
    """Looks at a place."""
    return RESULT


async def run(steps: int) -> float:
    """Return the CPU seconds of a run of `steps` steps."""
    model = Scripted(model="scripted", params=GenerateParams(), steps=steps)
    agent = Agent(name="bench", model=model, instructions="Go on.", tools=[look], max_steps=steps + 1)
    began = process_time()
    trajectory = await agent.run("work")
    taken = process_time() - began
    said = [message for message in trajectory.messages if message.role == "assistant"]
    results = [message for message in trajectory.messages if message.role == "tool"]
    assert (len(said), len(results)) == (steps, steps - 1), (len(said), len(results))
    assert all(message.content == RESULT for message in results), results[0]
    return taken


async def main(steps: int, repeats: int) -> None:
    await run(3)  # so that imports on first use do not count
    seconds = [await run(steps) for _ in range(repeats)]
    print(json.dumps({"version": metadata.version("dreadnode"), "seconds": seconds}))


logging.disable()
asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
