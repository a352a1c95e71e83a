"""Trajectories as datasets: every row has every column, and nothing of one row leaks into another."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from event_strategies import chats
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refold.modules.agent import Message, Trajectory, trajectories_to_hf_dataset, trajectory_to_jsonl_record
from refold.modules.agent.events import AgentStep
from refold.modules.agent.trajectory.datasets import DatasetsMissingError

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
RECORDS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "system", "content": "Look."},
            {"role": "user", "content": "tea?"},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "content": "here", "tool_call_id": "c1"},
            {"role": "assistant", "content": "here it is"},
        ],
        "tools": [{"function": {"parameters": {"properties": {"q": {"default": 1}}}}}],
        "metadata": {"agent_name": "scout", "success": True, "messages": "odd", "score": 0.5},
    },
    {
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
        "tools": [{"function": {"parameters": {"properties": {"q": {"default": "x"}, "z": {}}}}}],
        "metadata": {"task_type": "talk", "success": False, "score": "n/a", "nested": {"a": [1, "b"]}},
    },
    {"messages": []},
]


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf")))
    return pytest.importorskip("datasets")


def test_messages_keep_every_key_of_every_record(datasets: Any) -> None:
    """Seen elsewhere: keys that the first record lacks were dropped; two types of a default were an ArrowInvalid."""
    made = trajectories_to_hf_dataset(RECORDS)
    assert isinstance(made, datasets.Dataset)
    names = {"messages", "tools", "agent_name", "success", "metadata_messages", "score", "task_type", "nested"}
    assert set(made.column_names) == names
    for record, row in zip(RECORDS, made, strict=True):
        assert set(row) == names
        assert row["messages"] == record["messages"]
        assert row["tools"] == record.get("tools")
    assert made[0]["metadata_messages"] == "odd"
    assert [row["score"] for row in made] == [0.5, "n/a", None]
    assert made[1]["nested"] == {"a": [1, "b"]}
    assert made.features["success"] == datasets.Value("bool")
    assert made.features["task_type"] == datasets.Value("string")


def test_chats_have_role_and_content_alone(datasets: Any) -> None:
    made = trajectories_to_hf_dataset(RECORDS, format="chat")
    assert made.column_names == ["conversation", "agent_name", "task_type", "success"]
    assert made[0]["conversation"][2:4] == [{"role": "assistant", "content": ""}, {"role": "tool", "content": "here"}]
    assert made["agent_name"][:] == ["scout", "unknown", "unknown"]
    assert made["task_type"][:] == ["unknown", "talk", "unknown"]
    assert made["success"][:] == [True, False, None]


def test_turns_have_a_row_an_answer(datasets: Any) -> None:
    made = trajectories_to_hf_dataset(RECORDS, "turns")
    assert made.column_names == ["system", "history", "response", "tool_calls", "agent_name", "task_type"]
    assert made["response"][:] == ["", "here it is", "ho"]
    assert made["system"][:] == ["Look.", "Look.", None]
    assert [len(history) for history in made["history"]] == [1, 3, 1]
    assert made[0]["tool_calls"] == [CALL]
    assert made[1]["tool_calls"] is None


def test_parts_stay_parts(datasets: Any) -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "http://x"}}]
    record = {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "yes"}]}
    assert trajectories_to_hf_dataset([record], "chat")[0]["conversation"][0]["content"] == parts
    assert trajectories_to_hf_dataset([record], "turns")[0]["history"] == [{"role": "user", "content": parts}]


def test_no_records_make_an_empty_dataset(datasets: Any) -> None:
    for format, column in (("messages", "tools"), ("chat", "success"), ("turns", "response")):
        made = trajectories_to_hf_dataset([], format)
        assert len(made) == 0
        assert column in made.column_names


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(chats(), max_size=4))
def test_rows_are_the_records(datasets: Any, several: list[list[Message]]) -> None:
    told = [Trajectory(events=[AgentStep(messages=chat)]) for chat in several]
    records = [trajectory_to_jsonl_record(trajectory) for trajectory in told]
    assert [row["messages"] for row in trajectories_to_hf_dataset(records)] == [r["messages"] for r in records]
    assert trajectories_to_hf_dataset(told).to_list() == trajectories_to_hf_dataset(records).to_list()


def test_what_is_written_as_a_file_is_read_again(datasets: Any, tmp_path: Path) -> None:
    made = trajectories_to_hf_dataset(RECORDS)
    made.to_parquet(tmp_path / "x.parquet")
    read = datasets.Dataset.from_parquet(str(tmp_path / "x.parquet"), cache_dir=str(tmp_path / "cache"))
    assert json.loads(json.dumps(read.to_list())) == json.loads(json.dumps(made.to_list()))


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="messages, chat, turns"):
        trajectories_to_hf_dataset([], "other")


def test_where_the_package_is_missing_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetsMissingError, match=r"pip install 'refold\[datasets\]'"):
        trajectories_to_hf_dataset([])
    assert issubclass(DatasetsMissingError, ImportError)


def test_an_old_one_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    old = type(sys)("datasets")
    old.__dict__["__version__"] = "3.0"
    monkeypatch.setitem(sys.modules, "datasets", old)
    with pytest.raises(DatasetsMissingError, match=r"3\.0"):
        trajectories_to_hf_dataset([])
    importlib.invalidate_caches()
