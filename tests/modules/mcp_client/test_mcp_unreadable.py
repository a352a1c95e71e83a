"""Answers that are no messages of the protocol: each ends its call, and the server's other tools go on working."""

import json
import queue
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from table_server import answer
from warm_python import warm_python

from refold.modules.agent import ToolCall
from refold.modules.mcp import MCPClient, mcp
from refold.modules.mcp.answers import MOST_TOOLS, OpenRequests

HEAD = '{"jsonrpc":"2.0","id":@,'
TEXT = '{"content":[{"type":"text","text":"T"}]}'
UNREADABLE = {
    "truncated in the result": HEAD + '"result":{"content":[{"type":"te',
    "truncated before the id": '{"jsonrpc":"2.0",',
    "truncated, the result first": '{"result":{"content":[{"type":"te',
    "a comma too many": HEAD + '"result":{},}',
    "single quotes in the result": HEAD + "\"result\":{'content':[]}}",
    "NUL bytes between members": HEAD + '\0"result":{}}',
    "python's None": HEAD + '"result":None}',
    "nested without end": HEAD + '"result":' + "[" * 50_000,
    "nested too deep": HEAD + '"result":{"content":[],"structuredContent":{"a":' + "[" * 600 + "]" * 600 + "}}}",
    "a number of 5,000 digits": HEAD + f'"result":{{"content":[],"structuredContent":{{"a":{"9" * 5000}}}}}}}',
    "no result and no error": HEAD[:-1] + "}",
    "result and error": HEAD + f'"result":{TEXT},"error":{{"code":-32000,"message":"m"}}}}',
    "a result of null": HEAD + '"result":null}',
    "a result that is a list": HEAD + '"result":[]}',
    "a result that is a text": HEAD + '"result":"T"}',
    "a result that is a number": HEAD + '"result":1}',
    "an error without a message": HEAD + '"error":{"code":-32000}}',
    "an error without a code": HEAD + '"error":{"message":"m"}}',
    "an error that is a text": HEAD + '"error":"m"}',
    "an error that is null": HEAD + '"error":null}',
    "an error whose code is a text": HEAD + '"error":{"code":"E","message":"m"}}',
    "an error whose code has no end": HEAD + '"error":{"code":1e999,"message":"m"}}',
    "an error whose message is a list": HEAD + '"error":{"code":1,"message":["m"]}}',
    "no version": f'{{"id":@,"result":{TEXT}}}',
    "another version": f'{{"jsonrpc":"1.0","id":@,"result":{TEXT}}}',
    "a version that is a number": f'{{"jsonrpc":2.0,"id":@,"result":{TEXT}}}',
    "a batch of an answer that is none": "[" + HEAD + '"result":[]}]',
    "keys that only half emojis distinguish": HEAD
    + r'"result":{"content":[],"structuredContent":{"\ud83d":1,"\ude00":2}}}',
    "content that is a text": HEAD + '"result":{"content":"T"}}',
    "content that is null": HEAD + '"result":{"content":null}}',
    "structured content that is a list": HEAD + '"result":{"content":[],"structuredContent":[1]}}',
    "isError that is a list": HEAD + '"result":{"content":[],"isError":[]}}',
}
"""Answers that say nothing for certain; `@` stands for the request's id."""
WRONG_ID = {
    "an id of null": "null",
    "an id that is true": "true",
    "an id that is a list": "[@]",
    "an id that is an object": '{"id":@}',
    "an id that was never sent": "99999",
    "an id that is another text": '"x"',
    "an id without end": "1e999",
}
READ = {
    "half an emoji": HEAD + r'"result":{"content":[{"type":"text","text":"T\ud83d"}]}}',
    "the other half in a member's name": HEAD + r'"result":{"content":[{"type":"text","text":"T","\ude00":1}]}}',
    "half a character in UTF-8": HEAD + '"result":{"content":[{"type":"text","text":"T\xe2\x82"}]}}',
    "a byte order mark": "\xef\xbb\xbf" + HEAD + f'"result":{TEXT}}}',
    "a tab and an escape character in a text": HEAD + '"result":{"content":[{"type":"text","text":"T\t\x1b"}]}}',
    "NaN beside the text": HEAD + '"result":{"content":[{"type":"text","text":"T"}],"_meta":{"a":NaN}}}',
    "an id as a text": f'{{"jsonrpc":"2.0","id":"@","result":{TEXT}}}',
    "an id as a float": f'{{"jsonrpc":"2.0","id":@.0,"result":{TEXT}}}',
    "a batch": "[" + HEAD + f'"result":{TEXT}}}]',
    "an unknown block": HEAD + '"result":{"content":[{"type":"hologram","d":1},{"type":"text","text":"T"},7]}}',
    "two objects": HEAD + f'"result":{TEXT}}}{{}}',
    "ended by NUL bytes": HEAD + f'"result":{TEXT}}}\0\0',
    "after text of a log, its id last": f'INFO {{}} [x] sent {{"jsonrpc":"2.0","result":{TEXT},"id":@}} in 3 ms',
    "after half a message": '{"jsonrpc":"2.0","method":"notifications/mess' + HEAD + f'"result":{TEXT}}}',
    "an error of null beside the result": HEAD + f'"result":{TEXT},"error":null}}',
}
SPREAD = {
    "written over lines": json.dumps(json.loads((HEAD + f'"result":{TEXT}}}').replace("@", '"@"')), indent=2),
    "begun and left": HEAD,
    "half of it, then something printed": HEAD + '"result":{"content":[]\nhello',
}
"""The same over lines, which only stdio has."""
NAMES = [*UNREADABLE, *WRONG_ID, *READ, *SPREAD]
RAW = [
    *UNREADABLE.values(),
    *(f'{{"jsonrpc":"2.0","id":{i},"result":{TEXT}}}' for i in WRONG_ID.values()),
    *READ.values(),
    *SPREAD.values(),
]
SCHEMA = {"type": "object", "properties": {"which": {"type": "integer"}}}
TOOLS: list[Any] = [{"name": name, "inputSchema": SCHEMA} for name in ("raw", "up")]
SERVER = str(Path(__file__).parent / "table_server.py")


class Handler(BaseHTTPRequestHandler):
    """A server over HTTP; its path says how it sends its answers."""

    protocol_version = "HTTP/1.1"
    events: "queue.Queue[bytes | None]"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/sse":
            return self.reply(405, b"", "text/plain")
        if "id" not in message:
            return self.reply(202, b"", "text/plain")
        said = answer(message, TOOLS, RAW)
        event = b"event: message\ndata: " + said + b"\n\n"
        if self.path == "/posted":
            self.events.put(event)
            self.reply(202, b"Accepted", "text/plain")
        elif self.path == "/events":
            self.reply(200, event, "text/event-stream")
        else:
            self.reply(200, said, "text/plain" if self.path == "/odd" else "application/json")

    def do_GET(self) -> None:
        if self.path != "/sse":
            return self.reply(405, b"", "text/plain")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /posted\n\n")
        while (event := self.events.get()) is not None:
            self.wfile.write(event)

    def do_DELETE(self) -> None:
        self.reply(200, b"", "text/plain")

    def reply(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@contextmanager
def served(path: str) -> Iterator[str]:
    events: queue.Queue[bytes | None] = queue.Queue()
    handler = type("Serving", (Handler,), {"events": events})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{path}"
        finally:
            events.put(None)
            server.shutdown()
            thread.join()


@asynccontextmanager
async def connected(transport: str, folder: Path, tools: list[Any] = TOOLS) -> AsyncIterator[MCPClient]:
    if transport == "stdio":
        (folder / "answers.json").write_text(json.dumps([tools, RAW]))
        command, *args = [*warm_python(), SERVER, str(folder / "answers.json")]
        async with mcp("stdio", command=command, args=args, name="s", call_timeout=250) as client:
            yield client
        return
    with served(transport) as url:
        async with mcp("streamable-http", url=url, name="s", call_timeout=250) as client:
            yield client


async def call(client: MCPClient, name: str, **arguments: Any) -> str:
    tool = next(tool for tool in client.tools if tool.name == name)
    message, _ = await tool.handle_tool_call(ToolCall.of("c1", name, arguments))
    return str(message.content)


@pytest.mark.parametrize("transport", ["stdio", "/json", "/odd", "/events", "/sse"])
async def test_every_answer_ends_its_call_and_the_server_works_on(transport: str, tmp_path: Path) -> None:
    said = {}
    async with connected(transport, tmp_path) as client:
        for which, name in enumerate(NAMES if transport == "stdio" else NAMES[: -len(SPREAD)]):
            said[name] = await call(client, "raw", which=which), await call(client, "up")
    assert len(said) >= 50
    its_own = transport not in ("stdio", "/sse")  # an answer over streamable HTTP needs no id to belong to its request

    def check(name: str) -> None:
        raw, up = said[name]
        assert up == "up"
        if name in UNREADABLE or name in list(SPREAD)[1:] or (name in WRONG_ID and not its_own):
            assert "MCPProtocolError" in raw
            assert "MCP server 's' answered, but unreadable" in raw
        else:
            assert "error" not in raw
            assert "T" in raw

    each_case(check, [(name,) for name in said])
    assert "T\ufffd" in said["half an emoji"][0]
    assert said["an unknown block"][0].splitlines() == [
        "[content of an unknown or malformed type ('hologram') is left out]",
        "T",
        "[content of an unknown or malformed type (None) is left out]",
    ]


async def test_what_programs_print_is_no_answer(tmp_path: Path) -> None:
    """Such lines come before the answer, which counts."""
    printed = [
        "hello",
        "{'jsonrpc': 1}",
        '{"level":"info","error":"none"}',
        "[1, 2]",
        "42",
        "null",
        '"jsonrpc"',
        "",
        "\0",
    ]
    answers = OpenRequests()
    answers.sent(1, "tools/call", {"name": "x"})
    for line in [*printed, '{"jsonrpc":"2.0","method":5}', '{"jsonrpc":"2.0","method":"a",']:
        assert answers.read(line) == []
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
    assert answers.read(json.dumps(result)) == [result]
    assert answers.read(json.dumps(result)) == []  # a second one is late


async def test_lines_of_a_log_are_no_messages_of_the_server() -> None:
    """What a line names after other text is a message only if it answers an open request, whole."""
    answers = OpenRequests()
    for number in (1, 2):
        answers.sent(number, "tools/call", {"name": "x"})
    result = '"result":{"content":[]}}'
    for printed in (
        'DEBUG {"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        'DEBUG {"jsonrpc":"2.0","id":1,"result":{"con...',
        'DEBUG {"jsonrpc":"2.0","id":7,' + result,
        'DEBUG {"jsonrpc":"2.0","id":null,' + result,
    ):
        assert answers.read_line(printed.encode()) == []
    both = answers.read_line(f'{{"jsonrpc":"2.0","id":2,{result}{{"jsonrpc":"2.0","id":1,{result}'.encode())
    assert [(each["id"], "error" in each) for each in both] == [(2, False), (1, False)]


async def test_an_answer_without_an_id_is_that_of_the_request_that_is_left() -> None:
    answers = OpenRequests()
    for number in (1, 2, 3):
        answers.sent(number, "tools/call", {})
    answers.sent(None, "notifications/initialized", None)
    assert (
        answers.read('{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}') == []
    )  # to the notification
    answers.sent(4, "tools/call", {})
    assert [each["id"] for each in answers.read('{"jsonrpc":"2.0","id":4,"result":{"content":[]}}')] == [4]
    assert answers.read('{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m"}}') == []
    answers.sent(5, "tools/call", {})  # cannot be meant
    assert [each["id"] for each in answers.read('{"jsonrpc":"2.0","id":2,"result":{"content":[]}}')] == [2]
    answers.sent(None, "notifications/cancelled", {"requestId": 1})
    assert [each["id"] for each in answers.read('{"jsonrpc":"2.0","id":1,"result":{}}')] == []
    last = answers.read('{"jsonrpc":"2.0","id":5,"result":{"content":[]}}')
    assert [(each["id"], "error" in each) for each in last] == [(5, False), (3, True)]


@given(st.binary(max_size=60) | st.text(max_size=60), st.binary(max_size=6), st.integers(0, 60))
def test_no_bytes_break_the_reader_or_leave_a_call_open(noise: bytes | str, inside: bytes, cut: int) -> None:
    answers = OpenRequests()
    answers.sent(1, "tools/call", {})
    answers.read(noise)
    answers.sent(2, "tools/call", {})
    whole = b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
    at = min(17, cut)
    ended = answers.read_reply(whole[:at] + inside + whole[at:cut], 2)
    assert [each["id"] for each in ended if "method" not in each] == [2]


async def test_one_malformed_tool_is_left_out_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd: list[Any] = [
        {"name": "untyped", "inputSchema": {"properties": {}}},
        {"name": "bare"},
        {"inputSchema": {"type": "object"}},
        {"name": 1, "inputSchema": {"type": "object"}},
        "text",
        None,
        {"name": "hinted", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "perhaps"}},
    ]
    async with connected("stdio", tmp_path, [*odd[:4], *TOOLS, *odd[4:]]) as client:
        assert [tool.name for tool in client.tools] == ["raw", "up"]
        assert await call(client, "up") == "up"
    told = [record.getMessage() for record in caplog.records if "malformed tool" in record.getMessage()]
    assert len(told) == len(odd)
    assert "untyped" in told[0]


async def test_a_list_of_too_many_tools_is_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    many = [{"name": f"t{i}", "inputSchema": {"type": "object"}} for i in range(MOST_TOOLS + 500)]
    async with connected("stdio", tmp_path, many) as client:
        assert len(client.tools) == MOST_TOOLS
    assert f"{MOST_TOOLS} are used" in caplog.text
