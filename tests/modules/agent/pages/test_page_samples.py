"""What the samples of the API pages do, call by call, with names and texts of our own.

Each test is one sample: the same calls with the same arguments in the same order, imported from where they are here.
Those of MCP, sub-agents, evaluations and policies are with their own tests.
"""

import asyncio
import json
import subprocess
import sys
import threading
import typing as t
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from pydantic import PrivateAttr

from refold import modules
from refold.modules.agent import (
    Agent,
    FunctionGenerator,
    ScriptedGenerator,
    ToolCall,
    Trajectory,
    configure,
    load_trajectory_jsonl,
    tool,
    trajectories_to_hf_dataset,
    trajectory_from_openai_format,
    trajectory_to_jsonl_record,
)
from refold.modules.agent.events import AgentEnd, ToolEnd, ToolError
from refold.modules.tools import ask_user, set_user_input_callback

httpx = pytest.importorskip("httpx")
refold_agent = modules.agent


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if "missing" in self.path else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"path": self.path}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


async def using(given: t.Any, name: str, /, **arguments: t.Any) -> tuple[Trajectory, t.Any]:
    """The trajectory of an agent that calls a tool once, and the end that the call came to."""
    agent = Agent(name="sampler", model=ScriptedGenerator([ToolCall.of("c1", name, arguments), "done"]), tools=[given])
    async with agent.stream("go") as events:
        told = [event async for event in events]
    assert agent.trajectory.trace is not None
    assert await agent.make_engine().averify(agent.trajectory.trace) == []
    return agent.trajectory, next(event for event in told if isinstance(event, ToolEnd | ToolError))


# the page on agents


async def test_an_agent_is_a_task_of_an_evaluation() -> None:
    agent = Agent(name="solver", model=FunctionGenerator(lambda messages, params: "solved"))
    for task in (agent.as_task(), agent.task(name="solving")):
        assert (await task("solve it")).messages[-1].content == "solved"

    def task_factory(params: dict[str, t.Any]) -> t.Any:
        return agent.with_(**params).as_task()

    assert (await task_factory({"max_steps": 3, "instructions": "Be brief."})("solve it")).system_prompt == "Be brief."


async def test_a_tool_has_another_name_and_description() -> None:
    @tool(name="times", description="Multiplies.")
    def multiply(x: int, y: int) -> int:
        return x * y

    assert (multiply.name, multiply.description) == ("times", "Multiplies.")
    _, end = await using(multiply, "times", x=6, y=7)
    assert end.result == "42"


def test_messages_of_openai_become_a_trajectory() -> None:
    trajectory = trajectory_from_openai_format(
        [{"role": "user", "content": "ping"}, {"role": "assistant", "content": "pong"}]
    )
    assert [m.content for m in trajectory.messages] == ["ping", "pong"]


async def test_trajectories_become_training_data(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    agent = Agent(name="trainee", model=ScriptedGenerator(["pong"]))
    await agent.run("ping")
    record = trajectory_to_jsonl_record(agent.trajectory, metadata={"agent_name": "Trainee", "success": True})
    file = tmp_path / "records.jsonl"
    with file.open("a") as f:
        f.write(json.dumps(record) + "\n")

    trajectories = load_trajectory_jsonl(str(file))
    dataset = trajectories_to_hf_dataset(trajectories, format="chat")
    dataset.to_json(tmp_path / "dataset.jsonl")
    (row,) = load_trajectory_jsonl(tmp_path / "dataset.jsonl")
    assert [said["content"] for said in row["conversation"]] == ["ping", "pong"]
    assert (row["agent_name"], row["success"]) == ("Trainee", True)


# the guide to tools


@tool
def look_up(
    word: t.Annotated[str, "the word to explain"],
) -> dict[str, str]:
    """Explain a word."""
    return {"word": word, "meaning": "unknown"}


async def test_a_function_with_annotations_is_a_tool() -> None:
    assert look_up.parameters_schema["properties"]["word"]["description"] == "the word to explain"
    assert look_up.description == "Explain a word."
    _, end = await using(look_up, "look_up", word="tea")
    assert json.loads(end.result) == {"word": "tea", "meaning": "unknown"}


async def test_an_async_tool_is_awaited(site: str) -> None:
    @tool
    async def fetch_word(
        word: t.Annotated[str, "the word to fetch"],
    ) -> dict[str, str]:
        """Fetch what is known of a word."""
        async with httpx.AsyncClient() as client:
            response = await client.get(f"{site}/{word}")
            response.raise_for_status()
            return response.json()  # type: ignore[no-any-return]

    _, end = await using(fetch_word, "fetch_word", word="tea")
    assert json.loads(end.result) == {"path": "/tea"}
    _, end = await using(fetch_word, "fetch_word", word="missing")
    assert end.error_type == "HTTPStatusError"


async def test_a_tool_runs_a_program_in_either_way() -> None:
    @tool
    def blocking(text: str) -> str:
        result = subprocess.run([sys.executable, "-c", f"print({text!r})"], capture_output=True, text=True, timeout=250)
        return result.stdout

    @tool
    async def yielding(text: str) -> str:
        proc = await asyncio.create_subprocess_exec(
            sys.executable, "-c", f"print({text!r})",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        stdout, _ = await asyncio.wait_for(proc.communicate(), timeout=250)
        return stdout.decode(errors="replace")

    for given in (blocking, yielding):
        _, end = await using(given, given.name, text="tea")
        assert end.result.strip() == "tea"


async def test_catch_says_what_ends_the_turn() -> None:
    @tool(catch=[ConnectionError, TimeoutError])
    def reach(host: str) -> dict[str, str]:
        """Reaches a host."""
        raise {"down": ConnectionError, "slow": TimeoutError}.get(host, ValueError)(host)

    @tool(catch=False)
    def insist(name: str) -> dict[str, str]:
        """Insists."""
        raise TimeoutError(name)

    for host, kind in (("down", "ConnectionError"), ("slow", "TimeoutError")):
        trajectory, end = await using(reach, "reach", host=host)
        assert (end.error, end.error_type, trajectory.messages[-1].content) == (host, kind, "done")
    for given, arguments in ((reach, {"host": "odd"}), (insist, {"name": "odd"})):
        trajectory, end = await using(given, given.name, **arguments)
        assert isinstance(end, ToolError)
        last = trajectory.events[-1]
        assert isinstance(last, AgentEnd)
        assert last.stop_reason == "error"


async def test_what_is_not_written_yet_gives_nothing() -> None:
    @tool(catch=False)
    def later(name: str) -> dict[str, str]:  # type: ignore[empty-body]
        """Is to be written."""
        ...

    _, end = await using(later, "later", name="x")
    assert end.result == "null"


async def test_truncate_caps_what_the_model_reads() -> None:
    @tool(truncate=4000)
    def list_all(path: str) -> str:
        """Lists."""
        return path * 10_000

    _, end = await using(list_all, "list_all", path="ab")
    assert len(end.result) <= 4000


async def test_a_long_output_goes_to_a_file_of_the_cache(tmp_path: Path) -> None:
    @tool
    def recite(lines: int) -> str:
        """Recites."""
        return "tea is hot\n" * lines

    configure(cache=tmp_path)
    try:
        _, end = await using(recite, "recite", lines=4000)
    finally:
        configure()
    (file,) = (tmp_path / "tool-output").iterdir()
    assert end.output_file == f"tool-output/{file.name}"
    assert file.read_text() == "tea is hot\n" * 4000
    assert end.result.startswith("tea is hot")
    assert str(file) in end.result
    assert len(end.result) < 31_000


async def test_a_toolset_sets_attributes_in_its_init() -> None:
    class Words(refold_agent.Toolset):
        def __init__(self) -> None:
            self.known: dict[str, str] = {}

        @refold_agent.tool_method
        def explain(
            self,
            word: t.Annotated[str, "the word to explain"],
        ) -> dict[str, str]:
            """Explain a word."""
            if word in self.known:
                return {"word": word, "meaning": self.known[word]}
            meaning = "unknown"
            self.known[word] = meaning
            return {"word": word, "meaning": meaning}

    words = Words()
    for _ in range(2):
        _, end = await using(words, "explain", word="tea")
        assert json.loads(end.result) == {"word": "tea", "meaning": "unknown"}
    assert words.known == {"tea": "unknown"}
    assert words.name == "Words"


async def test_a_toolset_makes_its_client_when_it_is_first_needed(site: str) -> None:
    class Web(refold_agent.Toolset):
        _client: t.Any = PrivateAttr(default=None)

        def _ensure_client(self) -> t.Any:
            if self._client is None:
                self._client = httpx.AsyncClient(timeout=30)
            return self._client

        @refold_agent.tool_method
        async def fetch(
            self,
            url: t.Annotated[str, "the URL to fetch"],
        ) -> str:
            """Fetch a URL."""
            response = await self._ensure_client().get(url)
            response.raise_for_status()
            return response.text  # type: ignore[no-any-return]

    web = Web()
    _, end = await using(web, "fetch", url=f"{site}/tea")
    assert json.loads(end.result) == {"path": "/tea"}
    await web._client.aclose()


# the page on standard tools


async def test_a_model_asks_the_user() -> None:
    asked: list[tuple[str, t.Any]] = []

    def answer(question: str, options: t.Any) -> str:
        asked.append((question, options))
        return options[1] if options else "by lantern"

    set_user_input_callback(answer)
    try:
        _, free = await using(ask_user, "ask_user", question="How shall I signal?")
        _, chosen = await using(ask_user, "ask_user", question="Which harbour?", options=["north", "south"])
    finally:
        set_user_input_callback(None)
    assert (free.result, chosen.result) == ("by lantern", "south")
    assert [question for question, _ in asked] == ["How shall I signal?", "Which harbour?"]
