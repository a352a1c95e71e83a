"""An MCP server over stdio in plain Python, which starts fast and misbehaves as it is told.

`python raw_server.py FOLDER [MODE]`; it speaks the protocol of 2025-11-25. Each call of a tool adds a line to
FOLDER/calls, so that a test can tell how often a call was carried out.
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
MODE = sys.argv[2] if len(sys.argv) > 2 else ""
TEXT = {"type": "string"}
TOOLS = [
    {"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object", "properties": {"text": TEXT}}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "die_safely", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
    {"name": "die_after", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "garbage", "inputSchema": {"type": "object"}},
    {"name": "large", "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    {"name": "flood", "inputSchema": {"type": "object"}},
    {"name": "strange", "inputSchema": {"type": "object"}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "gone", "inputSchema": {"type": "object"}},
    {"name": "busy", "inputSchema": {"type": "object"}},
    {"name": "slow", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "picture", "inputSchema": {"type": "object"}},
]
ODD = [
    {
        "name": "slow_schema",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"v": {"pattern": "^(a+)+$"}}},
    },
    {"name": "ask_elsewhere", "inputSchema": {"type": "object"}},
    *TOOLS[:1],
]
answers: dict[str, Any] = {}
lock = threading.Lock()
slow = threading.Event()
numbers = itertools.count()


def send(**message: Any) -> None:
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(told: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": told}], **more}


def noted(line: str) -> None:
    with (FOLDER / "calls").open("a") as file:
        file.write(f"{line}\n")


def ask(form: dict[str, Any]) -> Any:
    name = f"q{next(numbers)}"
    arrived = answers[name] = threading.Event()
    send(id=name, method="elicitation/create", params={"message": "Who are you?", "requestedSchema": form})
    arrived.wait()
    return answers[name]


def call(number: Any, name: str, arguments: dict[str, Any]) -> None:
    noted(name)
    if name == "echo":
        send(id=number, result=text(arguments.get("text", "")))
    elif name in ("die", "die_safely"):
        first = (FOLDER / "calls").read_text().count("die_safely") < 2
        if name == "die" or first:
            print("I am dying", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        send(id=number, result=text("alive"))
    elif name == "die_after":
        send(id=number, result=text("bye"))
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "garbage":
        print("this is not JSON", flush=True)
        print('{"neither": "is this a message"}', flush=True)
        send(id=number, result={"content": "nor is this a result"})
    elif name == "large":
        send(id=number, result=text("x" * arguments["size"]))
    elif name == "strange":
        with lock:
            for line in (
                b"\xff\xfe",
                b"[" * 50_000,
                b'"\\ud800"',
                b"1" * 50_000,
                b"",
                b"\0",
            ):
                sys.stdout.buffer.write(line + b"\n")
        send(id=number, result=text("here"))
    elif name == "flood":
        with lock:
            while True:
                sys.stdout.write("x" * 65536)
    elif name == "fail":
        send(id=number, result=text("no luck", isError=True))
    elif name == "refuse":
        send(id=number, error={"code": -32602, "message": "not like this"})
    elif name == "gone":
        send(id=number, error={"code": -32602, "message": "Session not found: the tab was closed"})
    elif name == "busy":
        send(id=number, error={"code": -32000, "message": "busy"})
        slow.set()
    elif name == "slow":
        slow.wait()
        send(id=number, result=text("done"))
    elif name == "ask":
        given = ask({"type": "object", "properties": {"name": TEXT}, "required": ["name"]})
        noted(json.dumps(given, sort_keys=True))
        send(id=number, result=text(f"hello {(given.get('content') or {}).get('name', given['action'])}"))
    elif name == "ask_elsewhere":
        ask({"type": "object", "properties": {"name": {"$dynamicRef": (FOLDER / "url").read_text()}}})
    elif name == "slow_schema":
        send(id=number, result=text("here", structuredContent={"v": "a" * 50 + "!"}))
    elif name == "picture":
        parts = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "text", "text": "hi"}]
        send(id=number, result={"content": parts})


def listed(cursor: str | None) -> dict[str, Any]:
    if MODE == "many":
        page = int(cursor or 0)
        tools = [{"name": f"tool_{page * 100 + i}", "inputSchema": {"type": "object"}} for i in range(100)]
        return {"tools": tools, **({"nextCursor": str(page + 1)} if page < 9 else {})}
    if MODE == "endless":
        return {"tools": TOOLS[:1], "nextCursor": "again"}
    if MODE == "names":
        names = ["twice", "twice", "a.b/c", "a_b_c", "x" * 100, "läuft", "???"]
        return {
            "tools": [
                {"name": n, "description": str(i), "inputSchema": {"type": "object"}} for i, n in enumerate(names)
            ]
        }
    if MODE == "odd":
        return {"tools": ODD}
    if MODE == "bad_list":
        return {"tools": "none"}
    return {"tools": TOOLS}


def main() -> None:
    if MODE == "exit":
        print("cannot start: no luck", file=sys.stderr)
        sys.exit(3)
    if MODE == "unauthorized":
        print("error: 401 Unauthorized", file=sys.stderr)
        sys.exit(3)
    if MODE == "mute":
        time.sleep(600)
    print("hello from stderr", file=sys.stderr, flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method is None and number in answers:
            arrived, answers[number] = answers[number], message.get("result")
            arrived.set()
        elif method == "initialize":
            capabilities: dict[str, Any] = {"tools": {}}
            info = {"name": "raw", "version": "1"}
            send(
                id=number,
                result={"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info},
            )
        elif method == "tools/list":
            send(id=number, result=listed(params.get("cursor")))
        elif method == "tools/call":
            args = (number, params["name"], params.get("arguments") or {})
            threading.Thread(target=call, args=args, daemon=True).start()
        elif number is not None:
            send(id=number, error={"code": -32601, "message": "Method not found"})


main()
