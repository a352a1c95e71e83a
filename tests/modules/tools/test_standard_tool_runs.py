"""Each standard tool in a run: journaled, verified, and what tools keep in every commit."""

import http.server
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from refold import AgentModule, Decision, Engine, Observation, StateSchema, Task
from refold.modules.agent import Message, ToolCall, tool_context
from refold.modules.agent.tools import ToolContext, ToolOutcome, action_for, actions_of
from refold.modules.agent.tools.tool_state import fold_kept
from refold.modules.tools import SearchResult, default_tools, set_human_prompt_handler, use_search, use_workspace
from refold.modules.tools.human.prompts import HumanInputResponse, HumanPrompt
from refold.testing import assert_replays


class Chat(StateSchema):
    rounds: list[list[ToolCall]] = []
    messages: list[Message] = []
    kept: dict[str, Any] = {}


class Caller(AgentModule[Chat]):
    """Makes the calls that it is given, a round of them a step, and keeps what tools keep."""

    def __init__(self, *rounds: list[tuple[str, Mapping[str, Any]]]) -> None:
        self.tools = actions_of(list(default_tools(include_items=True).values()))
        self.rounds = [
            [ToolCall.of(f"c{step}-{n}", name, args) for n, (name, args) in enumerate(calls)]
            for step, calls in enumerate(rounds)
        ]

    def init_state(self, task: str) -> Chat:
        return Chat(rounds=self.rounds)

    def decide(self, state: Chat) -> Decision:
        if state.current_step == len(state.rounds):
            return Decision.final("done")
        return Decision.act([action_for(call) for call in state.rounds[state.current_step]])

    async def act(self, state: Chat, decision: Decision) -> Observation:
        with tool_context(ToolContext(facts={"kept": state.kept})):
            observation: Observation = await super().act(state, decision)
        return observation

    def reduce(self, state: Chat, decision: Decision, observation: Observation) -> None:
        for result in observation.results:
            outcome = ToolOutcome.of_result(result)
            state.messages.append(outcome.message(result.id))
            fold_kept(state.kept, outcome)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.py").write_text("def f():\n    return 1\n")
    with use_workspace(folder):
        yield folder


@pytest.fixture
def page() -> Iterator[str]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write("<h1>Größe</h1><p>a <b>page</b></p>".encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def answers(module: Caller, **options: Any) -> list[str]:
    result = assert_replays(module, "work", twice=False, **options)
    assert result.status == "completed", result.error
    assert isinstance(result.state, Chat)
    return [message.content for message in result.state.messages]


def test_every_standard_tool_runs_and_verifies(workspace: Path, page: str) -> None:
    def person(prompt: HumanPrompt) -> HumanInputResponse:
        return HumanInputResponse(request_id=prompt.request_id, selected_option="Yes") if prompt.options else (
            HumanInputResponse(text="blue")
        )  # fmt: skip

    set_human_prompt_handler(person)
    patch = "*** Begin Patch\n*** Add File: c.txt\n+sea\n*** End Patch"
    edit = {"old_string": "return 2", "new_string": "return 3"}
    module = Caller(
        [("read", {"file_path": "a.py"})],
        [("edit_file", {"path": "a.py", "old_string": "return 1", "new_string": "return 2"})],
        [("multiedit", {"path": "a.py", "edits": [edit]})],
        [("insert_lines", {"path": "a.py", "line_number": 1, "content": "# one\n# two"})],
        [("delete_lines", {"path": "a.py", "start_line": 2, "end_line": 2})],
        [("write", {"file_path": "b/b.txt", "content": "x\n"}), ("apply_patch", {"patch": patch})],
        [("ls", {}), ("glob", {"pattern": "**/*.txt"}), ("grep", {"pattern": "return"})],
        [("bash", {"cmd": "cat a.py; echo bad >&2"}), ("python", {"code": "print(6 * 7)"})],
        [("fetch", {"url": page}), ("think", {"thought": "hm"})],
        [("todo", {"todos": [{"id": "1", "content": "all"}]})],
        [("ask_user", {"question": "Colour?"}), ("confirm", {"action": "go"})],
        [("save_memory", {"key": "k", "value": "v"})],
        [("list_memory_keys", {}), ("retrieve_memory", {"key": "k"})],
        [("clear_memory", {})],
        [("web_extract", {"urls": [page]}), ("web_search", {"query": "size"})],
        [("report", {"content": "# Done", "title": "All"}), ("report_item", {"id": "a", "title": "A"})],
        [("report_item", {"id": "b", "title": "B", "severity": "high"})],
        [("link_items", {"source": "a", "target": "b"}), ("update_item", {"id": "b", "status": "fixed"})],
    )
    used = {name for calls in module.rounds for call in calls for name in [call.name]}
    assert used == set(module.tools), "every standard tool is called"
    results = [SearchResult("A page", page, "words")]
    try:
        with use_search(lambda query, most: results):
            found = answers(module)
    finally:
        set_human_prompt_handler(None)
    assert not [text for text in found if text.startswith("<error")]
    assert (workspace / "a.py").read_text() == "# one\ndef f():\n    return 3\n"
    assert (workspace / "c.txt").read_text() == "sea\n"
    assert found[10:13] == ["# one\ndef f():\n    return 3\nbad\n", "42\n", "# Größe\n\na **page**"]
    assert found[15:17] == ["blue", "True"]
    assert found[18:20] == ['["k"]', "v"]


def test_output_is_in_the_trace_while_a_command_runs(workspace: Path) -> None:
    result = Engine(Caller([("bash", {"cmd": "echo one; sleep 0.2; printf two"})])).run("x")
    intent, sandbox = [record for record in result.trace.records if record.kind == "intent"]
    assert sandbox["name"] == "sandbox"
    first, *events = [record for record in result.trace.records if record.kind == "event"]
    assert (first["name"], first["data"]) == ("pinned", {"workspace": str(workspace)})
    assert [(each["data"]["tool"], each["data"]["text"]) for each in events] == [("bash", "one\n"), ("bash", "two")]
    assert {each["intent"] for each in events} == {intent.seq}


class TestMemory:
    """What is saved is a value of the run's state: it survives whatever a state survives."""

    SAVES: tuple[list[tuple[str, Mapping[str, Any]]], ...] = (
        [("save_memory", {"key": "a", "value": "1"})],
        [("save_memory", {"key": "b", "value": "2"}), ("save_memory", {"key": "a", "value": "3"})],
        [("retrieve_memory", {"key": "a"}), ("list_memory_keys", {}), ("retrieve_memory", {"key": "z"})],
        [("clear_memory", {"key": "a"}), ("clear_memory", {"key": "q"})],
        [("list_memory_keys", {})],
    )

    def test_it_is_what_was_saved_last(self) -> None:
        found = answers(Caller(*self.SAVES))
        assert found[3:5] == ["3", '["a","b"]']
        assert found[5].startswith('<error type="KeyError">')
        assert found[6:] == ["Memory key 'a' cleared.", "Memory key 'q' not found. Nothing to clear.", '["b"]']

    def test_it_is_in_every_state(self) -> None:
        trace = Engine(Caller(*self.SAVES)).run("x").trace
        memories = [trace.state(k)["kept"].get("memory") for k in range(6)]
        both = {"a": "3", "b": "2"}
        assert memories == [None, {"a": "1"}, both, both, {"b": "2"}, {"b": "2"}]


def test_outside_of_a_state_memory_is_kept_apart_for_each_run() -> None:
    class Plain(Caller):
        async def act(self, state: Chat, decision: Decision) -> Observation:
            observation: Observation = await AgentModule.act(self, state, decision)
            return observation

    module = Plain([("save_memory", {"key": "a", "value": "1"})], [("list_memory_keys", {})])
    other = Plain([("list_memory_keys", {})])
    other.tools = module.tools
    assert answers(module)[1] == '["a"]'
    assert answers(other) == ["[]"]


def test_the_workspace_is_the_environment_of_the_run(tmp_path: Path, workspace: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "here.txt").write_text("yes")
    task = Task.model_validate({"objective": "x", "env_spec": {"type": "host", "config": {"workspace": str(own)}}})
    module = Caller([("glob", {"pattern": "*"}), ("bash", {"cmd": "ls"}), ("read", {"file_path": "../ws/a.py"})])
    result = Engine(module).run(task)
    assert isinstance(result.state, Chat), result.error
    found = [m.content for m in result.state.messages]
    assert found[:2] == ["here.txt", "here.txt\n"]
    assert "OutsideWorkspaceError" in found[2]
