"""What servers send that is no ordinary answer, each whole and as a stream: pairs of replies by name."""

import json
from collections.abc import Sequence
from typing import Any

from model_server import Cuts, Either, Fails, Raw, Reply, Says

SSE = "text/event-stream"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def whole(message: Any, finish: Any = "stop", usage: Any = USAGE, **more: Any) -> Raw:
    """A chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", **message} if isinstance(message, dict) else message}
    document = {"id": "x", "object": "chat.completion", "created": 1, "model": "t"}
    document |= {
        "choices": [{**choice, "finish_reason": finish}],
        **({} if usage is None else {"usage": usage}),
        **more,
    }
    return Raw(json.dumps(document))


def events(deltas: Sequence[Any], finish: Any = "stop", usage: Any = USAGE, *, done: bool = True) -> str:
    """The chunks of a completion as an event stream."""
    envelope = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "t"}
    chunks = [{**envelope, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        chunks.append({**envelope, "choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + ("data: [DONE]\n\n" if done else "")


def both(message: Any, deltas: Sequence[Any] | None = None, finish: Any = "stop", usage: Any = USAGE) -> Either:
    """The same answer, whole and in pieces; in one piece where none are given."""
    return Either(
        whole(message, finish, usage), Raw(events([message] if deltas is None else deltas, finish, usage), SSE)
    )


def never(body: str) -> Either:
    """A document that has no answer."""
    return Either(Raw(body), Raw(f"data: {body}\n\ndata: [DONE]\n\n", SSE))


def call(arguments: Any = '{"q": "a"}', **facts: Any) -> dict[str, Any]:
    """A call of a tool, with an id and a name unless told otherwise; what is ... is left out."""
    given = {"id": "c1", "name": "look", "type": "function", **facts}
    function = {"name": given.pop("name"), "arguments": arguments}
    function = {name: value for name, value in function.items() if value is not ...}
    return {**{name: value for name, value in given.items() if value is not ...}, "function": function}


def pieces(*calls: dict[str, Any], index: bool = True) -> list[Any]:
    """Calls as a stream has them: the head, then the arguments in pieces of three characters."""
    deltas: list[Any] = []
    for i, one in enumerate(calls):
        place = {"index": i} if index else {}
        arguments = one["function"].get("arguments")
        if not isinstance(arguments, str):
            deltas.append({"tool_calls": [{**place, **one}]})
            continue
        deltas.append({"tool_calls": [{**place, **one, "function": {**one["function"], "arguments": ""}}]})
        for at in range(0, len(arguments), 3):
            deltas.append({"tool_calls": [{**place, "function": {"arguments": arguments[at : at + 3]}}]})
    return deltas


def calling(*calls: dict[str, Any], finish: str = "tool_calls", index: bool = True) -> Either:
    """An answer that calls tools."""
    return both({"content": None, "tool_calls": list(calls)}, pieces(*calls, index=index), finish)


def unnumbered(*calls: dict[str, Any]) -> Either:
    """Calls whole in a chunk each, without an index."""
    return both({"content": None, "tool_calls": list(calls)}, [{"tool_calls": [one]} for one in calls], "tool_calls")


def text(said: Any, finish: Any = "stop", usage: Any = USAGE) -> Either:
    """An answer that says something."""
    return both({"content": said}, finish=finish, usage=usage)


def same(reply: Reply) -> Either:
    """The same reply to both."""
    return Either(reply, reply)


HTML = "<!DOCTYPE html><html><body>Please log in to the guest network</body></html>"
ASKED = '{"q": "a"}'
LEGACY = {"name": "look", "arguments": ASKED}
HELLO = whole({"content": "hello"})

BEHAVIOURS: dict[str, Either] = {
    "a text": text("hello"),
    "a text in pieces": both({"content": "hello you"}, [{"content": "hel"}, {"content": "lo "}, {"content": "you"}]),
    "a call": calling(call()),
    "two calls": calling(call(), call('{"q": "b"}', id="c2")),
    "a call without an id": calling(call(id=...)),
    "a call whose id is null": calling(call(id=None)),
    "a call whose id is empty": calling(call(id="")),
    "a call whose id is a number": calling(call(id=7)),
    "two calls without ids": calling(call(id=...), call('{"q": "b"}', id=...)),
    "two calls with one id": calling(call(), call('{"q": "b"}')),
    "a call without a name": calling(call(name=...)),
    "a call whose name is empty": calling(call(name="")),
    "a call whose name is null": calling(call(name=None)),
    "a call of no tool": calling(call(name="nothing")),
    "calls without an index": unnumbered(call(), call('{"q": "b"}', id="c2")),
    "calls without index or id": unnumbered(call(id=...), call('{"q": "b"}', id=...)),
    "calls that all have index 0": both(
        {"content": None, "tool_calls": [call(), call('{"q": "b"}', id="c2")]},
        [{"tool_calls": [{"index": 0, **call()}]}, {"tool_calls": [{"index": 0, **call('{"q": "b"}', id="c2")}]}],
        "tool_calls",
    ),
    "a name in each piece": both(
        {"content": None, "tool_calls": [call()]},
        [{"tool_calls": [{"index": 0, **call(p)}]} for p in ('{"q"', ': "a"', "}")],
        "tool_calls",
    ),
    "interleaved calls": both(
        {"content": None, "tool_calls": [call(), call('{"q": "b"}', id="c2")]},
        [
            {"tool_calls": [{"index": 0, **call("")}]},
            {"tool_calls": [{"index": 1, **call("", id="c2")}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"q": "a"}'}}]},
            {"tool_calls": [{"index": 1, "function": {"arguments": '{"q": "b"}'}}]},
        ],
        "tool_calls",
    ),
    "arguments that are an object": unnumbered(call({"q": "a"})),
    "arguments that are null": calling(call(None)),
    "arguments that are missing": calling(call(...)),
    "arguments that are broken": calling(call('{"q": ')),
    "arguments of the wrong type": calling(call('{"q": 1}')),
    "arguments that are a list": calling(call("[1]")),
    "arguments with NaN": calling(call('{"q": NaN}')),
    "arguments with half a surrogate": calling(call('{"q": "\\ud800"}')),
    "a call that is not an object": both({"content": None, "tool_calls": ["look"]}, finish="tool_calls"),
    "calls that are no list": both({"content": None, "tool_calls": call()}, finish="tool_calls"),
    "a custom call": both(
        {
            "content": None,
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "look", "input": '{"q": "a"}'}}],
        },
        finish="tool_calls",
    ),
    "a function_call": both(
        {"content": None, "function_call": LEGACY},
        [{"function_call": {"name": "look", "arguments": ""}}, {"function_call": {"arguments": LEGACY["arguments"]}}],
        "function_call",
    ),
    "a function_call that is text": both({"content": None, "function_call": "look"}, finish="function_call"),
    "calls that end with stop": calling(call(), finish="stop"),
    "tool_calls without calls": text("", "tool_calls"),
    "tool_calls with a text": text("hm", "tool_calls"),
    "tool_calls that are an empty list": both({"content": "hm", "tool_calls": []}),
    "many calls": calling(*(call(f'{{"q": "{i}"}}', id=f"c{i}") for i in range(60))),
    "a refusal": both({"content": None, "refusal": "I won't"}, [{"refusal": "I "}, {"refusal": "won't"}]),
    "a refusal as a part": text([{"type": "refusal", "refusal": "I won't"}]),
    "a refusal beside a text": both({"content": "but", "refusal": "I won't"}),
    "parts of text": both(
        {"content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]},
        [{"content": [{"type": "text", "text": "hel"}]}, {"content": [{"type": "text", "text": "lo"}]}],
    ),
    "parts without a type": text([{"text": "hello"}, "you"]),
    "a part that is a picture": text([{"type": "text", "text": "see"}, PICTURE]),
    "a part that nobody knows": text([{"type": "smell", "smell": "roses"}]),
    "pictures": both({"content": "see", "images": [PICTURE]}, [{"content": "see"}, {"images": [PICTURE]}]),
    "pictures alone": both({"content": None, "images": [PICTURE]}),
    "audio": both(
        {"content": None, "audio": {"id": "a", "data": "AAAA", "transcript": "hello"}},
        [{"audio": {"id": "a", "data": "AA", "transcript": "hel"}}, {"audio": {"data": "AA", "transcript": "lo"}}],
    ),
    "citations": both({"content": "x", "annotations": [{"type": "url_citation", "url_citation": {"url": "http://x"}}]}),
    "reasoning": both(
        {"content": "x", "reasoning_content": "hm hm"},
        [{"reasoning_content": "hm "}, {"reasoning_content": "hm"}, {"content": "x"}],
    ),
    "reasoning by another name": both({"content": "x", "reasoning": "hm"}, [{"reasoning": "hm"}, {"content": "x"}]),
    "a member that nobody knows": both({"content": "x", "mood": "good"}),
    "content that is a number": text(5),
    "content that is an object": text({"a": 1}),
    "content that is true": text(True),
    "content that is null": text(None),
    "content that is empty": text(""),
    "content that is blank": text(" \n"),
    "half a surrogate": text("broken \ud83d here"),
    "a NUL": text("a\0b"),
    "a long text": both({"content": "word " * 20_000}, [{"content": "word " * 100}] * 200),
    "length": text("half an ans", "length"),
    "length and nothing": text("", "length"),
    "length in a call": calling(call('{"q": "a'), finish="length"),
    "content_filter": text("", "content_filter"),
    "content_filter after a text": text("I was about", "content_filter"),
    "a finish that nobody knows": text("hello", "because"),
    "a finish that is null": text("hello", None),
    "a finish that is a number": text("hello", 3),
    "no usage": text("hello", usage=None),
    "usage below 0": text("hello", usage={"prompt_tokens": -5, "completion_tokens": 5}),
    "usage beyond all reason": text("hello", usage={"prompt_tokens": 10**30, "completion_tokens": 5}),
    "usage as texts": text("hello", usage={"prompt_tokens": "10", "completion_tokens": "5", "total_tokens": "15"}),
    "usage in words": text("hello", usage={"prompt_tokens": "many"}),
    "usage that is a list": text("hello", usage=[1, 2]),
    "usage that is a number": text("hello", usage=15),
    "usage of nothing": text("hello", usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    "usage as fractions": text("hello", usage={"prompt_tokens": 10.0, "completion_tokens": 5.5}),
    "usage with null details": text("hello", usage={**USAGE, "prompt_tokens_details": None}),
    "usage with details": text("hello", usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}),
    "usage of a total alone": text("hello", usage={"total_tokens": 15}),
    "no choices": never('{"choices": []}'),
    "choices that are null": never('{"choices": null}'),
    "choices that are texts": never('{"choices": ["x"]}'),
    "an empty object": never("{}"),
    "a list": never("[]"),
    "nothing at all": same(Raw("")),
    "a message that is null": both(None),
    "a message that is text": both("hello"),
    "an error with status 200": Either(
        Raw('{"error": {"message": "out of order", "code": 500}}'),
        Raw('data: {"error": {"message": "out of order", "code": 500}}\n\n', SSE),
    ),
    "an error without a code": Either(
        Raw('{"error": {"message": "no"}}'), Raw('data: {"error": {"message": "no"}}\n\n', SSE)
    ),
    "an error that is text": Either(Raw('{"error": "no"}'), Raw('data: {"error": "no"}\n\n', SSE)),
    "a whole answer to everybody": same(HELLO),
    "a whole answer called a stream": same(Raw(HELLO.body, SSE)),
    "a stream to everybody": same(Raw(events([{"content": "hel"}, {"content": "lo"}]), SSE)),
    "a stream called JSON": same(Raw(events([{"content": "hello"}]))),
    "comments in a stream": Either(HELLO, Raw(": ping\n\n" + events([{"content": "hello"}]), SSE)),
    "a stream without DONE": Either(HELLO, Raw(events([{"content": "hello"}], done=False), SSE)),
    "an HTML page": same(Raw(HTML, "text/html")),
    "an HTML page called JSON": same(Raw(HTML)),
    "an HTML page called a stream": same(Raw(HTML, SSE)),
    "a plain text": same(Raw("come back later", "text/plain")),
    "half a document": Either(Raw(HELLO.body[:60]), Raw(events([{"content": "hello"}])[:60], SSE)),
    "an HTML page and 503": same(Fails(503, raw=HTML)),
    "429": same(Fails(429, headers={"retry-after": "0"})),
    "no quota": same(Fails(429, "no money", code="insufficient_quota")),
    "500": same(Fails(500)),
    "401": same(Fails(401, "bad key")),
    "404": same(Fails(404, "no such model")),
    "a cut connection": same(Cuts()),
    "a cut answer": same(Cuts(Says("an answer that breaks off"))),
}
