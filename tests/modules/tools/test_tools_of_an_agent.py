"""The standard tools in an Agent: what Memory holds is in its state, and comes back on resume and in forks."""

from pathlib import Path
from typing import Any

import pytest

from refold import Engine
from refold.modules.agent import Agent, Message, ScriptedGenerator, ToolCall
from refold.modules.tools import default_tools, use_workspace


def asks(*calls: tuple[str, dict[str, Any]]) -> Message:
    made = [ToolCall.of(f"{name}-{n}", name, args) for n, (name, args) in enumerate(calls)]
    return Message("assistant", "", tool_calls=made)


SCRIPT = [
    asks(("save_memory", {"key": "colour", "value": "blue"}), ("write", {"file_path": "f", "content": "x\n"})),
    asks(("edit_file", {"path": "f", "old_string": "x", "new_string": "y"}), ("bash", {"cmd": "echo hi"})),
    asks(("ask_user", {"question": "Go on?"})),
    asks(("retrieve_memory", {"key": "colour"}), ("read", {"file_path": "f"})),
    Message("assistant", "done"),
]


def agent() -> Agent:
    return Agent(name="worker", model=ScriptedGenerator(SCRIPT), tools=list(default_tools().values()))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_memory_outlives_the_process_that_saved(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    with use_workspace(tmp_path / "ws"):
        waiting = await Engine(agent().module(), traces=tmp_path / "t").arun("go")
        assert waiting.status == "waiting", waiting.error
        engine = Engine(agent().module(), traces=tmp_path / "t")
        result = await engine.aresume(waiting.run_id, "yes")
    assert result.status == "completed", result.error
    state: Any = result.state
    results = [message.content for message in state.messages if message.role == "tool"]
    assert results[3:6] == ["hi\n", "yes", "blue"]
    assert "1→y" in results[6]
    assert state.kept == {"memory": {"colour": "blue"}}
    assert await engine.averify(result.trace) == []
