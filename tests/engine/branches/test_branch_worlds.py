"""What children touch: environments that fork, secrets, and cancellation while they are at work."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from places import HELPERS
from pydantic import SecretStr
from timing import cancelled_when
from toys.tree import assert_family_holds, children, choices
from warm_python import warm_python

from refold import (
    Action,
    AgentModule,
    BeamSearch,
    BestFirst,
    BestOfN,
    Decision,
    Engine,
    MonteCarloTreeSearch,
    Observation,
    RunResult,
    StateSchema,
    Task,
    Trace,
    effect,
    perform,
)
from refold.tasks import current_environment


class Notes(StateSchema):
    notes: list[str] = []


def write(name: str, text: str) -> str:
    environment = current_environment()
    before = environment.list()
    environment.write_text(name, text)
    return f"{name}={text} after {' '.join(before)}"


async def fails(name: str) -> str:
    current_environment().write_text(name, "lost")
    raise RuntimeError("the tool is broken")


lingering: list[str] = []
"""The calls that have begun to take long."""


async def linger(name: str) -> str:
    lingering.append(name)
    await anyio.sleep(30)
    return name


def act(tool: str, /, **args: Any) -> Decision:
    return Decision.act(Action(tool, args))


def branch(*decisions: Decision) -> Decision:
    return Decision.branch(decisions)


class Does(AgentModule[Notes]):
    tools = {"write": write, "fails": fails, "linger": linger}

    def __init__(self, *decisions: Decision, **tools: Any) -> None:
        self.decisions = decisions
        self.tools = {**Does.tools, **tools}

    def init_state(self, task: str) -> Notes:
        return Notes()

    def decide(self, state: Notes) -> Decision:
        if state.current_step >= len(self.decisions):
            return Decision.final("done")
        return self.decisions[state.current_step]

    def reduce(self, state: Notes, decision: Decision, observation: Observation) -> None:
        state.notes += [result.output if result.ok else f"error {result.error}" for result in observation.results]


def last(state: Notes) -> float:
    return float(sum(ord(note[0]) for note in state.notes))


SEARCHES = [
    BestOfN(last, steps=1),
    BestOfN(last),
    BeamSearch(3, 3, last),
    BestFirst(last),
    MonteCarloTreeSearch(last),
]
by_all = pytest.mark.parametrize("strategy", SEARCHES, ids=lambda s: f"{type(s).__name__}{getattr(s, 'steps', '')}")


def in_environment(kind: str, folder: Path, **config: Any) -> Task:
    folder.mkdir(exist_ok=True)
    (folder / "start").write_text("here")
    name = "workspace" if kind == "host" else "source"
    return Task(id="work", objective="work", env_spec={"type": kind, "config": {name: str(folder), **config}})


WRITES = Does(
    act("write", name="first", text="1"),
    Decision.branch(
        [act("write", name="a", text="1"), act("write", name="c", text="2"), act("write", name="b", text="3")]
    ),
    act("write", name="end", text="4"),
)


# environments


@by_all
def test_each_child_works_in_a_fork_and_the_chosen_ones_files_are_adopted(
    strategy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    (tmp_path / "copies").mkdir()
    engine = Engine(WRITES, branch=strategy)
    result = engine.run(in_environment("scratch", tmp_path / "source", keep=True))
    assert_family_holds(engine, result)
    assert result.error is None
    assert result.state.notes == [
        "first=1 after start",
        "c=2 after first start",
        "end=4 after c first start",
    ]
    assert sorted(path.name for path in (tmp_path / "source").iterdir()) == ["start"]
    (kept,) = (tmp_path / "copies").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["c", "end", "first", "start"], "no candidate's copy is kept"


def test_files_follow_the_tree_of_a_search(tmp_path: Path) -> None:
    def letters(*names: str) -> Decision:
        return Decision.branch([act("write", name=name, text=name) for name in names])

    module = Does(letters("a", "b"), letters("c", "d"), Decision.branch([letters("e", "f"), letters("g")]))
    for strategy in (BeamSearch(8, 8, last), BestOfN(last), MonteCarloTreeSearch(last)):
        engine = Engine(module, branch=strategy)
        result = engine.run(in_environment("scratch", tmp_path / "source"))
        assert_family_holds(engine, result)
        assert result.state.notes == ["b=b after start", "d=d after b start", "g=g after b d start"]


@by_all
def test_the_host_refuses_to_explore_before_anything_is_opened(strategy: Any, tmp_path: Path) -> None:
    engine = Engine(WRITES, branch=strategy)
    result = engine.run(in_environment("host", tmp_path / "host"))
    assert (result.status, result.steps) == ("failed", 1)
    assert result.error is not None
    assert result.error.type == "UsageError"
    assert "shared_env=True" in result.error.message
    assert children(result.trace) == []
    assert not [r for r in result.trace.records if r.kind == "branch"]
    assert sorted(path.name for path in (tmp_path / "host").iterdir()) == ["first", "start"]


# secrets


SECRET = "hunter2hunter2"
LEARNT = "swordfish-swordfish"


@effect()
async def login(password: Any) -> str:
    return f"logged in with {SECRET} and {LEARNT}"


async def enter(name: str) -> str:
    return f"{name}{await perform(login, SecretStr(LEARNT))}"


async def tells() -> str:
    return f"{SECRET} {LEARNT}"


def files_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@by_all
def test_no_secret_is_written_in_any_trace_of_the_family(strategy: Any, tmp_path: Path) -> None:
    class Careless(Does):
        def reduce(self, state: Notes, decision: Decision, observation: Observation) -> None:
            if observation.results and observation.results[0].id == "bad":
                raise ValueError(f"it was {SECRET}")
            super().reduce(state, decision, observation)

    module = Careless(
        Decision.branch(
            [
                act("enter", name="b"),
                act("enter", name="a"),
                Decision.act(Action("enter", {"name": "c"}, id="bad"), rationale=f"why not {SECRET}"),
            ]
        ),
        act("tells"),
        enter=enter,
        tells=tells,
    )
    engine = Engine(module, branch=strategy, traces=tmp_path, redact={"PIN": SECRET})
    result = engine.run("t")
    assert_family_holds(engine, result)
    told = "logged in with <redacted:PIN> and <redacted:password>"
    assert result.state.notes == [f"b{told}", "<redacted:PIN> <redacted:password>"]
    written = files_below(tmp_path)
    assert SECRET.encode() not in written
    assert LEARNT.encode() not in written
    assert choices(result.trace)[0]["lost"] == {"2": "ValueError: it was <redacted:PIN> (step 0, reduce)"}


# cancellation


@by_all
def test_a_cancelled_exploration_closes_all_books_and_goes_on_when_resumed(strategy: Any) -> None:
    slow = True
    ran: list[str] = []
    reached: list[str] = []

    async def work(name: str) -> str:
        if slow and name == "c":
            reached.append(name)
            await anyio.sleep(30)
        ran.append(name)
        return name

    @effect(idempotent=True)
    async def again(name: str) -> str:
        return await work(name)

    candidates = [act("again", name=name) for name in "acb"]
    engine = Engine(Does(Decision.branch(candidates), again=again), branch=strategy)
    results: list[RunResult] = []

    async def cancelled() -> None:
        async with cancelled_when(lambda: reached):
            try:
                await engine.arun("t")
            except BaseException as raised:
                results.append(raised.result)  # type: ignore[attr-defined]
                raise

    anyio.run(cancelled)
    first = results[0]
    assert first.status == "cancelled"
    for trace in (first.trace, *children(first.trace)):
        trace.check()
        assert trace.ending.record is not None
        for record in trace.records:
            assert record.kind != "intent" or any(r.get("intent") == record.seq for r in trace.records)
    slow = False
    result = engine.resume(first.trace)
    assert_family_holds(engine, result)
    assert result.state.notes == ["c"]
    assert sorted(ran) == ["a", "b", "c"]


SCRIPT = """
import sys
sys.path[:0] = {folders!r}
from test_branch_worlds import *
module = Does(branch(act("write", name="a", text="1"), act("linger", name="b"), act("linger", name="c")))
def tell(record):
    if record.kind == "branch": print("ready", flush=True)
engine = Engine(module, branch=BestOfN(last), traces={traces!r}, shared_env=True, observers=[tell])
engine.run(in_environment("host", Path({traces!r}) / "host"))
"""


AT_WORK = ["completed", "interrupted", "interrupted"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_exploring_writes_every_end(number: int, code: int, tmp_path: Path) -> None:
    script = SCRIPT.format(folders=[str(Path(__file__).parent), str(HELPERS)], traces=str(tmp_path))
    process = subprocess.Popen([*warm_python(), "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    until = time.monotonic() + 250
    while sorted(Trace.load(path).status for path in tmp_path.rglob("*.branches/*.jsonl")) != AT_WORK:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(process.pid, number)
    process.communicate()
    assert process.returncode in (code, -number, 1)
    (path,) = tmp_path.glob("*.trace.jsonl")
    trace = Trace.load(path)
    assert trace.status == "cancelled"
    assert [child.status for child in children(trace)] == ["completed", "cancelled", "cancelled"]
    for each in (trace, *children(trace)):
        each.check()
