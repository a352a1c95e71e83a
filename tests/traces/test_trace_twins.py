"""Two runs of one script are equal, whatever tools they used; and no real difference is hidden as an id."""

import asyncio
import http.server
import json
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from view_server import serving

from refold import Action, AgentModule, Decision, Engine, Observation, StateSchema, ask, call_info, new_id, now
from refold.cli.commands.trace.diff import compare
from refold.modules.agent import Agent, FunctionGenerator, ToolCall, tool
from refold.modules.agent.subagent import SubAgentToolset
from refold.modules.skills import Skill, create_skill_tool
from refold.modules.tools import SearchResult, default_tools, use_sandbox, use_search, use_workspace
from refold.testing import FakeClock
from refold.traces import Trace, family
from refold.traces.derived_ids import derive, id_from

Call = tuple[str, dict[str, Any]]

CALLS: list[Call] = [
    ("write", {"file_path": "new.txt", "content": "one\ntwo\n"}),
    ("read", {"file_path": "a.txt"}),
    ("ls", {}),
    ("glob", {"pattern": "*.txt"}),
    ("grep", {"pattern": "alpha"}),
    ("edit_file", {"path": "a.txt", "old_string": "alpha", "new_string": "beta"}),
    ("multiedit", {"path": "b.txt", "edits": [{"old_string": "gamma", "new_string": "delta"}]}),
    ("insert_lines", {"path": "a.txt", "line_number": 1, "content": "first"}),
    ("delete_lines", {"path": "b.txt", "start_line": 1, "end_line": 1}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Add File: c.txt\n+new\n*** End Patch"}),
    ("bash", {"cmd": "echo $((6 * 7)); echo no >&2; exit 3"}),
    ("bash", {"cmd": "seq 1 20000"}),
    ("python", {"code": "print('x' * 10)"}),
    ("fetch", {"url": "PAGE"}),
    ("web_extract", {"urls": ["PAGE"]}),
    ("web_search", {"query": "refold"}),
    ("report", {"content": "# Found\nnothing"}),
    ("report_item", {"id": "i1", "title": "An item"}),
    ("update_item", {"id": "i1", "status": "fixed"}),
    ("link_items", {"source": "i1", "target": "i2"}),
    ("think", {"thought": "hm"}),
    ("todo", {"todos": [{"id": "1", "content": "x", "status": "pending", "priority": "high"}]}),
    ("ask_user", {"question": "Go on?", "options": ["yes", "no"]}),
    ("ask_user", {"question": "How many?"}),
    ("confirm", {"action": "delete it"}),
    ("save_memory", {"key": "k", "value": "v"}),
    ("retrieve_memory", {"key": "k"}),
    ("list_memory_keys", {}),
    ("clear_memory", {"key": "k"}),
    ("skill", {"name": "tidy"}),
    ("spawn_agent", {"task": "look around", "agent_type": "explore"}),
    ("makes_ids", {"count": 3}),
    ("asks_with_ids", {"question": "Which?"}),
    ("missing_tool", {}),
    ("read", {"path": 7, "other": 1}),
]
"""Every standard tool, and what tools of users do with ids and times."""


@tool
def makes_ids(count: int) -> str:
    """Make ids and read the clock, as tools do that name what they create."""
    made = [new_id() for _ in range(count)]
    short, key = new_id()[:8], call_info().key
    return f"{made} ord-{short} {key} {key[:12]} at {now().isoformat()} {now():%Y%m%d-%H%M%S} {now().timestamp()}"


@tool
async def asks_with_ids(question: str) -> str:
    """Ask with details that were made anew."""
    details = {"ticket": f"t-{new_id()}", "at": f"{now():%H:%M:%S}", "by": {call_info().key: "key"}}
    return str(await ask(question, details=details))


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<h1>Title</h1><p>Text.</p>")

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def run(folder: Path, turns: list[list[Call]], page: str, **options: Any) -> Trace:
    """Run an agent that makes these calls, a list of them a turn, in a fresh workspace."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "a.txt").write_text("alpha\n")
    (work / "b.txt").write_text("gamma\n")

    def model(messages: Any, params: Any) -> Any:
        if not any(each.function.name == "todo" for each in params.tools or ()) or messages[0].content == "look around":
            return "Nothing there."
        done = sum(each.role == "assistant" for each in messages)
        if done == len(turns):
            return "Done."
        return [
            ToolCall.of(f"call_{uuid.uuid4().hex}", name, json.loads(json.dumps(args).replace("PAGE", page)))
            for name, args in turns[done]
        ]

    tools: list[Any] = [*default_tools(include_items=True).values(), makes_ids, asks_with_ids]
    tools.append(create_skill_tool([Skill(name="tidy", description="Tidies up", instructions="Tidy up.")]))
    engine: Any = {"traces": folder / "runs", "on_wait": answer}
    agent = Agent(name="a", model=FunctionGenerator(model), tools=tools, engine=engine | options)
    agent.tools.append(SubAgentToolset(parent_agent=agent))
    with use_workspace(work), use_sandbox("local"), use_search(lambda query, most: [SearchResult("t", "u", "s")]):
        return asyncio.run(agent.run("Do it all")).trace


def answer(request: Any) -> Any:
    """Answer with the first option, or with text."""
    return "Yes" if "confirm" in str(request.details).lower() else "yes"


@settings(deadline=None, max_examples=6)
@given(turns=st.lists(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4), min_size=1, max_size=3))
def test_two_runs_of_one_script_are_equal(
    turns: list[list[Call]], page: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    one, other = (run(folder, turns, page) for _ in range(2))
    diff = one.diff(other)
    assert not diff, str(diff)
    assert (diff.states, diff.settings, list(one.diff_all(other))) == ((), (), [])
    for mine, theirs in zip(family(one).run.calls, family(other).run.calls, strict=True):
        assert not one.relative(mine.run_id).diff(other.relative(theirs.run_id))


def test_each_tool_alone_makes_equal_runs(tmp_path: Path, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (run(tmp_path, [[each] for each in CALLS], page) for _ in range(2))
    assert one.status == "completed"
    assert not one.diff(other), str(one.diff(other))
    assert one.path is not None
    assert other.path is not None
    assert compare(one.path, other.path, every=True, as_json=False) == 0
    assert "the traces are equal" in capsys.readouterr().out
    assert compare(one.path, other.path, every=False, as_json=True) == 0
    as_json = json.loads(capsys.readouterr().out)
    assert (as_json["equal"], as_json["states"], as_json["settings"]) == (True, [], [])
    called = {effect.name for step in one.steps for effect in step.effects}
    assert called >= {name for name, _ in CALLS if name != "missing_tool"}


def test_one_second_of_a_run_may_be_two_of_the_other(tmp_path: Path, page: str) -> None:
    """Both questions of the first run are asked in one second, those of the second run in two."""

    def asking(start: float, seconds: float) -> Trace:
        clock = FakeClock(start)

        def slow(request: Any) -> Any:
            clock.advance(seconds)
            return answer(request)

        turns = [[("asks_with_ids", {"question": each})] for each in ("Which?", "And then?")]
        return run(tmp_path, turns, page, clock=clock, on_wait=slow)

    one, other = asking(1_700_000_000.0, 0.0), asking(1_700_000_100.0, 1.0)
    assert not one.diff(other), str(one.diff(other))
    assert (one.diff(other).states, list(one.diff_all(other))) == ((), [])


def test_a_changed_setting_is_named_once_and_the_first_result_that_differs_is_shown(
    tmp_path: Path, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def brief(instructions: str) -> Trace:
        def model(messages: Any, params: Any) -> Any:
            exact = "exact" in messages[0].content
            if messages[-1].role == "user":
                return [ToolCall.of(f"call_{uuid.uuid4().hex}", "makes_ids", {"count": 1})]
            return "exactly 10" if exact else "about 10"

        engine: Any = {"traces": tmp_path}
        agent = Agent(
            name="a", model=FunctionGenerator(model), instructions=instructions, tools=[makes_ids], engine=engine
        )
        return agent.run_sync("How many?").trace

    one, other = brief("Be brief"), brief("Be exact")
    diff = one.diff(other)
    assert (diff.step, diff.phase, diff.words) == (1, "decide", "act answer(): about 10 | act answer(): exactly 10")
    assert "/state/system/body" in [each.path for each in diff.settings]
    assert one.path is not None
    assert other.path is not None
    assert compare(one.path, other.path, every=False, as_json=False) == 1
    shown = capsys.readouterr().out
    assert shown.index("/state/system/body") < shown.index("first differ at step 1, decide")
    with serving(tmp_path) as server:
        found = server.get("compare", a=one.run_id, b=other.run_id, n=10)
        again = brief("Be brief")
        same = server.get("compare", a=one.run_id, b=again.run_id, n=10)
    assert (found["first"]["ka"], found["first"]["phase"]) == (1, "decide")
    assert "/state/system/body" in [each["path"] for each in found["given"]]
    assert (same["first"], same["given"], same["differing"], same["states"]) == (None, [], [], None)


class Notes(StateSchema):
    notes: list[Any] = []


class Shop(AgentModule[Notes]):
    """Orders, asks and notes; each of its values can be another one in the second run."""

    def __init__(self, **other: Any) -> None:
        self.values: dict[str, Any] = other
        self.tools = {"order": self.order}

    def init_state(self, task: str) -> Notes:
        return Notes()

    async def order(self, item: str) -> dict[str, Any]:
        mine = [new_id(), new_id()]
        answer = await ask("Really?", details={"ticket": mine[0], "kept": self.values.get("details", "x")})
        ids = mine[::-1] if self.values.get("swap") else mine
        return {
            "ids": ids,
            "key": call_info().key,
            "at": now(),
            "said": answer,
            "value": self.values.get("result", "x"),
        }

    def decide(self, state: Notes) -> Decision:
        if state.current_step == 2:
            return Decision.final(str(self.values.get("answer", "x")))
        return Decision.act([Action("order", {"item": str(self.values.get("item", "x"))})])

    def reduce(self, state: Notes, decision: Decision, observation: Observation) -> None:
        state.notes.extend(each.output for each in observation.results)
        state.notes.append(self.values.get("note", "x"))


def shop(**other: Any) -> Trace:
    said = other.get("said", "x")
    return Engine(Shop(**other), on_wait=lambda request: said).run("Buy it").trace


LOOKALIKES: list[tuple[Any, Any]] = [
    ("req-0f3e021d901e4429", "req-f099647f1d5d7d34"),
    (str(uuid.UUID(int=5, version=4)), str(uuid.UUID(int=6, version=4))),
    (id_from(derive(b"", 7, "", 0, "act", "id|0")), id_from(derive(b"", 8, "", 0, "act", "id|0"))),
    ("53c50b10bd689596eedc6abb0b7177d1", "80205fbfdee61340a41b33b4316e9452"),
    ("ord-e110c991", "ord-db9bd68c"),
    ("2020-01-02T03:04:05Z", "2020-01-02T03:04:06Z"),
    (1795718499.061, 1795718500.061),
    ("call_1a2b3c4d5e6f", "call_6f5e4d3c2b1a"),
    (1, True),
]
PLACES = {
    "details": "wait",
    "said": "wait",
    "result": "act",
    "item": "decide",
    "note": "reduce",
    "answer": "decide",
}
"""The phase in which another value at a place of `Shop` differs first."""
VALUES = st.sampled_from(LOOKALIKES) | st.tuples(
    st.text(min_size=1, max_size=9), st.text(min_size=1, max_size=9)
).filter(lambda pair: pair[0] != pair[1])


@given(place=st.sampled_from(sorted(PLACES)), values=VALUES)
def test_no_other_value_is_taken_for_an_id(place: str, values: tuple[Any, Any]) -> None:
    one, other = (shop(**{place: value}) for value in values)
    assume(place not in ("answer", "item") or str(values[0]) != str(values[1]))
    assert not one.diff(shop(**{place: values[0]})), "the same values are equal"
    for diff in (one.diff(other), other.diff(one)):
        assert (diff.phase, diff.step) == (PLACES[place], 2 if place == "answer" else 0)
    first = one.diff(other).differences[0]
    assert (first.left, first.right) == (tuple(map(str, values)) if place in ("answer", "item") else values)


def test_ids_that_changed_places_are_a_difference() -> None:
    diff = shop().diff(shop(swap=True))
    assert (diff.step, diff.phase, diff.path) == (0, "act", "/effects/order/result/ids/0")


def test_an_id_in_the_place_of_another_runs_is_a_difference() -> None:
    """A pair is one to one: the second order may not have the id of the first."""
    one = shop()
    first = one.steps[0].effects[0].result["ids"][0]
    diff = shop(note=first).diff(shop(note="y"))
    assert (diff.step, diff.phase) == (0, "reduce")
    assert shop(note=first).diff(shop(note=one.run_id)).phase == "reduce"
