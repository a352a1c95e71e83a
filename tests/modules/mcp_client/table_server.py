"""An MCP server over stdio whose tool `raw` answers with the text of a table: `python table_server.py FILE`.

FILE is the JSON of a list: the tools that it lists, and the table.
"""

import json
import sys
from pathlib import Path
from typing import Any


def answer(message: dict[str, Any], tools: list[Any], raw: list[str]) -> bytes:
    number, method = message["id"], message["method"]
    end: dict[str, Any] = {"error": {"code": -32601, "message": "no"}}
    if method == "initialize":
        info = {"name": "s", "version": "1"}
        end = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    elif method == "tools/list":
        end = {"result": {"tools": tools}}
    elif method == "tools/call":
        if message["params"]["name"] == "raw":
            text: str = raw[message["params"]["arguments"]["which"]].replace("@", json.dumps(number))
            return text.encode("latin-1")
        end = {"result": {"content": [{"type": "text", "text": "up"}]}}
    return json.dumps({"jsonrpc": "2.0", "id": number, **end}).encode()


def main() -> None:
    tools, raw = json.loads(Path(sys.argv[1]).read_text())
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            sys.stdout.buffer.write(answer(message, tools, raw) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
