"""A conversation of a stranger: each message is shown, whatever its shape, and none takes the others with it."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hostile_traces import nested, said, write_run
from view_server import serving

from refold.traces.file.blob import FolderBlobs

SHAPES: tuple[Any, ...] = (
    *(None, True, 7, 1e300, "a text", [], {}, ["a", 1, None], [[1]], {"": 1}, nested(200)),
    {"role": ["x"], "content": {"a": 1}},
    {"role": {}, "content": 3, "metadata": 5},
    {"role": "user", "content": [1, "two", None, ["three"], {"text": 4}, {"image_url": 5}, {"input_audio": {}}]},
    {"role": "user", "content": [{"input_audio": {"format": [1], "transcript": {"a": 1}}}]},
    {"role": "assistant", "content": "", "metadata": {"reasoning_content": {"a": [1]}}},
    {"role": "assistant", "content": "", "metadata": {"thinking_blocks": [1, {"thinking": 2}, {"thinking": "t"}]}},
    {"role": "assistant", "content": "", "tool_calls": 3},
    {"role": "assistant", "content": "", "tool_calls": {"a": 1}},
    {"role": "assistant", "content": "", "tool_calls": [1, None, "x", [2], {}]},
    {"role": "assistant", "content": "", "tool_calls": [{"id": ["a"], "function": {"name": {"b": 1}}}]},
    {"role": "assistant", "content": "", "tool_calls": [{"id": {"a": 1}, "function": [1]}]},
    {"role": "tool", "tool_call_id": {"a": 1}, "content": {"b": 2}, "metadata": {"error": nested(99)}},
    {"role": "tool", "content": "an answer to nothing"},
    *(
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": text}}]}
        for text in ("{", "NaN", "[" * 252 + "]" * 252, "[" * 600 + "]" * 600, 5, nested(100))
    ),
)


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_a_message_of_any_shape_is_shown_among_the_others(tmp_path: Path, shape: Any) -> None:
    first, last = {"role": "user", "content": "before"}, {"role": "user", "content": "after"}
    write_run(tmp_path / "a.trace.jsonl", {"messages": [first]}, said(shape), said(shape, last))
    with serving(tmp_path) as asking:
        chat = asking.get("chat", id="a", from_=0, to=200)
        beginning, one, two = chat["turns"]
        assert beginning["messages"][0]["parts"][0]["text"]["value"] == "before"
        assert [len(each["messages"]) for each in (one, two)] == [1, 2]
        assert two["messages"][1]["parts"][0]["text"]["value"] == "after"
        for question, more in (("changes", {"k": 0}), ("state", {"k": 2}), ("step", {"k": 1})):
            asking.get(question, id="a", **more)


def test_what_is_no_text_is_shown_as_its_json(tmp_path: Path) -> None:
    call = {"id": ["a"], "function": {"name": {"b": 1}, "arguments": "[" * 600}}
    answer = {"role": "tool", "tool_call_id": ["a"], "content": "42"}
    twice = {"role": "tool", "tool_call_id": ["a"], "content": "43"}
    asked = {"role": "assistant", "content": {"c": 2}, "tool_calls": [call]}
    write_run(tmp_path / "a.trace.jsonl", {"messages": []}, said([1, {"x": 2}], asked, answer, twice))
    with serving(tmp_path) as asking:
        listed, asks, alone = asking.get("chat", id="a", from_=0, to=200)["turns"][1]["messages"]
        assert [part["text"]["value"] for part in listed["parts"]] == ["1", '{"x":2}']
        assert asks["parts"][0]["text"]["value"] == '{"c":2}'
        assert (asks["tool_calls"][0]["name"], asks["tool_calls"][0]["args"]["value"]) == ('{"b":1}', "[" * 600)
        assert {asks["tool_calls"][0]["output"]["value"], alone["parts"][0]["text"]["value"]} == {"42", "43"}


@pytest.mark.parametrize("messages", [{"a": 1}, "text", None, 3])
def test_a_state_with_other_messages_has_an_empty_conversation(tmp_path: Path, messages: Any) -> None:
    patch = [{"op": "replace", "path": "/messages/a" if isinstance(messages, dict) else "/messages", "value": 2}]
    write_run(tmp_path / "a.trace.jsonl", {"messages": messages}, [{"kind": "commit", "patch": patch}])
    with serving(tmp_path) as asking:
        turns = asking.get("chat", id="a", from_=0, to=200)["turns"]
        assert [each["messages"] for each in turns] == [[], []]


def test_a_conversation_has_so_many_pieces_at_most(tmp_path: Path) -> None:
    calls = [
        {"id": str(n), "function": {"name": "f" * 3_000_000 if not n else "f", "arguments": "{}"}}
        for n in range(20_000)
    ]
    failed = {"role": "tool", "tool_call_id": "0", "content": "", "metadata": {"error": "e" * 5_000_000}}
    asked = {"role": "assistant", "content": "", "tool_calls": calls}
    many = [{"role": "user", "content": "hello"}] * 600
    write_run(tmp_path / "a.trace.jsonl", {"messages": []}, said(asked, failed), said(*many), *[said(*many)] * 12)
    with serving(tmp_path) as asking:
        answer = asking.http.get("/api/chat", params={"id": "a", "from": 0, "to": 200})
        _, one, *others = orjson.loads(answer.content)["turns"]
        assert (len(one["messages"][0]["tool_calls"]), one["messages"][0]["more"]) == (500, 19_500)
        shown = [len(each["messages"]) for each in others]
        assert (shown[0], others[0]["more"], sum(shown)) == (500, 100, 5_000 - 501)
        assert [each["more"] + len(each["messages"]) for each in others] == [600] * 13
        assert len(answer.content) < 3_000_000


def test_a_value_of_any_depth_is_shown_as_far_as_an_answer_goes(tmp_path: Path) -> None:
    patches = [[{"op": "replace", "path": "/a", "value": nested(200, n)}] for n in range(2)]
    steps = [[{"kind": "commit", "patch": each}] for each in patches]
    write_run(tmp_path / "a.trace.jsonl", {"a": nested(200)}, *steps)
    with serving(tmp_path) as asking:
        node = asking.get("state", id="a", k=2, path="/a")
        levels = 0
        while "children" in node:
            levels, node = levels + 1, node["children"][0]
        assert (levels, node["size"], node["at"]) == (50, 1, "s:2:/a" + "/0" * 50)
        assert asking.get("state", id="a", k=2, path="/a" + "/0" * 199)["children"][0]["value"] == 1
        assert asking.get("value", id="a", at=node["at"])["text"].split() == [*"[" * 150, "1", *"]" * 150]
        tree = asking.get("changes", id="a", k=1)["tree"]
        while tree["change"] == "in":
            (tree,) = (each for each in tree["children"] if "change" in each)
        assert (tree["change"], tree["path"]) == ("replace", "/a" + "/0" * 49)
        asking.get("history", id="a", path="/a", offset=0)
        asking.get("compare", a="a", b="a", n=10)


def test_a_stored_picture_is_shown_and_a_lost_or_misnamed_one_is_not(tmp_path: Path) -> None:
    kept = FolderBlobs(tmp_path / "a.trace.jsonl").put(b"\x89PNG")
    found = {"type": "file", "blob": kept["$blob"], "bytes": 4, "media_type": "image/png"}
    parts = [found, {**found, "blob": "0" * 32}, {**found, "blob": "../a"}, {**found, "bytes": -1}]
    write_run(tmp_path / "a.trace.jsonl", {"messages": [{"role": "user", "content": parts}]}, said("x"))
    with serving(tmp_path) as asking:
        shown = asking.get("chat", id="a", from_=0, to=200)["turns"][0]["messages"][0]["parts"]
    assert shown[0] == {"type": "image", "url": "data:image/png;base64,iVBORw==", "bytes": 4}
    assert [part["url"] for part in shown[1:]] == [None, None, None]
