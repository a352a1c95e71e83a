"""A server made with the package `mcp`, of the protocol of 2026-07-28: it asks by its result, and is asked again."""

import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel

FOLDER = Path(sys.argv[1])
server = MCPServer("asking", request_state_security=RequestStateSecurity(keys=[os.environ["KEY"].encode()]))


class Person(BaseModel):
    name: str


def who() -> Elicit[Person]:
    with (FOLDER / "calls").open("a") as file:
        file.write("ask\n")
    return Elicit("Who are you?", Person)


@server.tool()
def ask(person: Annotated[ElicitationResult[Person], Resolve(who)]) -> str:
    return f"hello {person.data.name if isinstance(person, AcceptedElicitation) else person.action}"


if __name__ == "__main__":
    server.run()
