"""Converters: to the forms of others and back, with everything that those forms can hold."""

import json
from pathlib import Path
from typing import Any

import pytest
from event_strategies import chats, trajectories
from hypothesis import given

from refold.modules.agent import (
    Content,
    Message,
    ToolCall,
    Trajectory,
    Usage,
    load_trajectory_jsonl,
    trajectory_from_openai_format,
    trajectory_to_jsonl_record,
    trajectory_to_openai_format,
    trajectory_to_rows,
    trajectory_to_turns,
)
from refold.modules.agent.chat import ContentImageUrl, ContentText
from refold.modules.agent.events import AgentStart, AgentStep, GenerationEnd, GenerationStep, ToolStep

CALL = ToolCall.of("c1", "find", {"q": "tea"})
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "find tea"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "tea"}'}}],
    },
    {"role": "tool", "content": "here", "tool_call_id": "c1"},
    {"role": "assistant", "content": "It is here."},
]


def told() -> Trajectory:
    facts: dict[str, Any] = {"agent_name": "scout"}
    asked = Message("assistant", "", tool_calls=[CALL])
    done = Message("assistant", "It is here.", metadata={"model": "test/model"})
    events = [
        AgentStart(inputs={"goal": "find tea"}),
        ToolStep(tool_call=CALL, messages=[Message("tool", "here", tool_call_id="c1")]),
        GenerationEnd(step=1, messages=[asked], usage=Usage(total_tokens=7)),
        GenerationStep(**facts, step=1, messages=[Message("user", "find tea"), asked], usage=Usage(total_tokens=7)),
        GenerationStep(**facts, step=2, messages=[done], usage=Usage(total_tokens=9)),
    ]
    return Trajectory(events=events, system_prompt="Look.")


def test_a_trajectory_as_openai_writes_it() -> None:
    assert trajectory_to_openai_format(told()) == SAID
    assert trajectory_to_openai_format(Trajectory()) == []


@given(chats())
def test_a_chat_goes_there_and_back(chat: list[Message]) -> None:
    documents = trajectory_to_openai_format(Trajectory(events=[AgentStep(messages=chat)]))
    read = trajectory_from_openai_format(json.loads(json.dumps(documents)))
    assert trajectory_to_openai_format(read) == documents
    assert trajectory_to_openai_format(Trajectory.from_dict(read.to_dict())) == documents


@given(trajectories)
def test_whatever_happened_can_be_converted(trajectory: Trajectory) -> None:
    documents = trajectory_to_openai_format(trajectory)
    assert len(documents) == len(trajectory.messages)
    json.dumps([trajectory_to_jsonl_record(trajectory), trajectory_to_turns(trajectory)], allow_nan=False)
    assert trajectory_to_rows(trajectory) == trajectory.trajectory_to_rows()


def test_images_are_kept() -> None:
    """Seen elsewhere: they were lost."""
    parts: list[Content] = [ContentText(text="what is it?"), ContentImageUrl.from_url("http://x/y.png")]
    trajectory = Trajectory(events=[AgentStep(messages=[Message("user", parts)])])
    (document,) = trajectory_to_openai_format(trajectory)
    assert [part["type"] for part in document["content"]] == ["text", "image_url"]
    assert trajectory_from_openai_format([document]).messages == trajectory.messages


def test_steps_end_with_an_assistants_message() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4}
    documents = [*SAID[:-1], {**SAID[-1], "usage": usage}, {"role": "user", "content": "thanks"}]
    trajectory = trajectory_from_openai_format(documents)
    assert [(type(step), step.step, len(step.messages)) for step in trajectory.steps] == [
        (AgentStep, 0, 2),
        (GenerationStep, 1, 2),
        (AgentStep, 2, 1),
    ]
    assert trajectory.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert trajectory_to_openai_format(trajectory) == [*SAID, {"role": "user", "content": "thanks"}]


def test_a_system_message_stays_one_and_content_may_be_none() -> None:
    trajectory = trajectory_from_openai_format(
        [{"role": "system", "content": "Look."}, {"role": "user", "content": None, "metadata": {"a": 1}}]
    )
    assert trajectory.system_prompt is None
    assert [(m.role, m.content) for m in trajectory.messages] == [("system", "Look."), ("user", "")]
    assert trajectory.messages[1].metadata == {"a": 1}
    with pytest.raises(ValueError, match="role"):
        trajectory_from_openai_format([{"role": "nobody", "content": "x"}])


def test_messages_of_a_class_of_ones_own() -> None:
    class Letter(Message):
        pass

    assert type(trajectory_from_openai_format(SAID, Letter).steps[0].messages[0]) is Letter
    with pytest.raises(TypeError, match="message_class"):
        trajectory_from_openai_format(SAID, dict)  # type: ignore[arg-type]


def test_records_begin_with_the_systems_message() -> None:
    system = {"role": "system", "content": "Look."}
    assert trajectory_to_jsonl_record(told()) == {"messages": [system, *SAID]}
    assert trajectory_to_jsonl_record(told(), "Other.")["messages"][0]["content"] == "Other."
    own = trajectory_from_openai_format([{"role": "system", "content": "Own."}, *SAID])
    own.system_prompt = "Stored."
    assert trajectory_to_jsonl_record(own, "Other.")["messages"] == [{"role": "system", "content": "Own."}, *SAID]
    record = trajectory_to_jsonl_record(told(), tools=[{"type": "function"}], metadata={"success": True})
    assert (record["tools"], record["metadata"]) == ([{"type": "function"}], {"success": True})
    assert set(trajectory_to_jsonl_record(told(), tools=[], metadata={})) == {"messages"}


def test_records_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "training.jsonl"
    records = [trajectory_to_jsonl_record(told()), {"messages": []}]
    path.write_text("\n\n".join(map(json.dumps, records)) + "\n")
    assert load_trajectory_jsonl(path) == records
    path.write_text('{"messages": []}\n[1]\n')
    with pytest.raises(ValueError, match="line 2"):
        load_trajectory_jsonl(str(path))
    path.write_text('{"messages": ')
    with pytest.raises(ValueError, match="line 1"):
        load_trajectory_jsonl(path)


def test_turns_have_one_dict_an_answer() -> None:
    first, second = trajectory_to_turns(told())
    assert first == {
        "session_id": first["session_id"],
        "step": 1,
        "system": "Look.",
        "user": "find tea",
        "assistant": "",
        "tool_calls": [{"id": "c1", "name": "find", "arguments": '{"q": "tea"}'}],
        "usage_tokens": 7,
        "agent": "scout",
        "model": None,
    }
    assert (second["user"], second["usage_tokens"], second["model"]) == (None, 9, "test/model")
    loaded = trajectory_from_openai_format(trajectory_to_openai_format(told()))
    assert [turn["user"] for turn in trajectory_to_turns(loaded)] == ["find tea", None]
