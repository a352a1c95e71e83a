"""What a child run waits for, its run waits for: it is shown there, answered there, and reaches the child."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from toys.workers import Boss, Log, Worker, children_of, without_ids

from refold import Action, AgentModule, Decision, Engine, Observation, RunStatus, WaitRequest, ask, effect, run_child
from refold.errors import WaitAnsweredError
from refold.testing import FakeClock
from refold.traces.analysis.locate import branches_folder

folders = pytest.mark.parametrize("kept", ["memory", "disk"])


def traces(kept: str, tmp_path: Path) -> Path | None:
    return tmp_path if kept == "disk" else None


@folders
def test_several_children_ask_and_are_answered_one_by_one(kept: str, tmp_path: Path) -> None:
    engine = Engine(Boss(), traces=traces(kept, tmp_path))
    result = engine.run("note:a ask:b note:c\nask:d ask:e\nnote:f")
    assert result.status is RunStatus.waiting
    by_prompt = {request.prompt: request for request in result.waiting}
    assert by_prompt.keys() == {"b", "d"}
    children = children_of(result.trace)
    assert [child.status for child in children] == ["waiting", "waiting", "completed"]
    assert by_prompt["b"].details == {"in": "ask", "run": children[0].run_id, "child": "worker"}
    result = engine.resume(result.trace, "B", request=by_prompt["b"].id)
    assert {request.prompt for request in result.waiting} == {"d"}
    assert children_of(result.trace)[0].status == "completed", "it goes on while the other waits"
    result = engine.resume(result.trace, "D")
    assert {request.prompt for request in result.waiting} == {"e"}
    result = engine.resume(result.trace, "E")
    assert result.state.said == ["completed: thought of a B thought of c", "completed: D E", "completed: thought of f"]
    assert len(children_of(result.trace)) == 3
    assert engine.verify(result.trace) == []
    for child in children_of(result.trace):
        assert Engine(Worker()).verify(child) == []


def test_an_answer_that_does_not_fit_is_refused_and_the_run_waits_on(tmp_path: Path) -> None:
    engine = Engine(Boss(), traces=tmp_path)
    result = engine.run("ask:b")
    with pytest.raises(WaitAnsweredError, match="is no answer"):
        engine.resume(result.trace, 5)
    assert engine.resume(result.trace, "five").state.said == ["completed: five"]


def test_a_handler_is_asked_by_the_child_and_the_run_does_not_stop(tmp_path: Path) -> None:
    asked: list[str | None] = []

    async def answer(request: WaitRequest) -> str:
        asked.append(request.prompt)
        await anyio.sleep(0)
        return f"{request.prompt}!"

    async def main() -> None:
        engine = Engine(Boss(Boss()), traces=tmp_path, on_wait=answer)
        result = await engine.arun("ask:b\nask:c")
        assert result.state.said == ["completed: completed: b!", "completed: completed: c!"]
        assert sorted(map(str, asked)) == ["b", "c"]
        assert not [record for record in result.trace.records if record.kind == "wait"]

    anyio.run(main)


def test_a_question_from_two_levels_down_reaches_its_asker(tmp_path: Path) -> None:
    engine = Engine(Boss(Boss()), traces=tmp_path)
    result = engine.run("note:a ask:b")
    (request,) = result.waiting
    result = engine.resume(result.trace, "B", request=request.id)
    assert result.state.said == ["completed: completed: thought of a B"]
    assert engine.verify(result.trace) == []


class Both(Boss):
    """Asks itself while its child asks."""

    async def hand(self, line: str) -> dict[str, Any]:
        if line == "own":
            return {"status": "own", "final": await ask("mine?", str)}
        return await super().hand(line)


def test_a_run_asks_beside_its_children(tmp_path: Path) -> None:
    engine = Engine(Both(), traces=tmp_path)
    result = engine.run("own\nask:b\nnote:c")
    assert {request.prompt for request in result.waiting} == {"mine?", "b"}
    result = engine.resume(result.trace, {r.id: str(r.prompt).upper() for r in result.waiting})
    assert result.state.said == ["own: MINE?", "completed: B", "completed: thought of c"]


class Patient(AgentModule[Log]):
    """Waits for an answer in a step of its own, for a while."""

    def init_state(self, task: str) -> Log:
        return Log()

    def decide(self, state: Log) -> Decision:
        if state.current_step == 0:
            return Decision.wait(prompt="well?", seconds=100)
        if state.current_step == 1:
            return Decision.wait("a moment", seconds=0)
        return Decision.final(f"heard {state.said}")

    def reduce(self, state: Log, decision: Decision, observation: Any) -> None:
        state.said.append(str(observation.value))


def test_wait_decisions_and_their_time_hold_in_children(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FakeClock()
        engine = Engine(Boss(Patient()), traces=tmp_path, clock=clock)
        result = await engine.arun("go")
        (request,) = result.waiting
        assert request.deadline is not None
        clock.advance(200)
        result = await engine.aresume(result.trace)
        assert result.state.said == ["completed: heard ['None', 'None']"]

    anyio.run(main)


def test_time_spent_waiting_in_a_child_is_not_counted_for_the_run() -> None:
    now = [0.0]

    class Ticking:
        def time(self) -> float:
            return now[0]

        def monotonic(self) -> float:
            return now[0]

    def slow(request: WaitRequest) -> str:
        now[0] += 1000.0
        return "late"

    boss = Boss()
    result = Engine(boss, on_wait=slow, clock=Ticking()).run("ask:b")
    assert result.state.said == ["completed: late"]
    assert result.usage.seconds == 0.0, "the clock goes on in the wait alone"
    assert boss.seen[0].usage.seconds == 0.0


def hand(text: str) -> int:
    return 7


class Touching(Worker):
    """Has a tool of the same name as its boss, that gives something else."""

    tools = {**Worker.tools, "hand": hand}


def test_the_fate_of_a_childs_call_is_asked_and_checked_by_the_childs_own_tools(tmp_path: Path) -> None:
    engine = Engine(Boss(Touching()), traces=tmp_path)
    path = cut_inside_the_childs_call(engine)
    result = engine.resume(path)
    (fate,) = result.waiting
    assert (fate.kind, fate.details["name"], fate.details["child"]) == ("unknown_effect", "hand", "touching")
    result = engine.resume(path, {"ran": "text, and no number"}, request=fate.id)
    (again,) = result.waiting
    assert again.id != fate.id
    assert "expected int" in again.details["refused"]
    result = engine.resume(path, {"ran": 7})
    assert result.status is RunStatus.completed
    assert result.state.said == ["completed: thought of a 7"]
    assert engine.verify(result.trace) == []


def cut_inside_the_childs_call(engine: Engine) -> Path:
    """A run that was killed while its child's tool was at work."""
    result = engine.run("note:a hand:b")
    path, (child,) = result.trace.path, children_of(result.trace)
    assert path is not None
    assert child.path is not None
    lines = child.path.read_bytes().splitlines(keepends=True)
    opened = max(i for i, line in enumerate(lines) if b'"name":"hand"' in line and b'"kind":"intent"' in line)
    child.path.write_bytes(b"".join(lines[: opened + 1]))
    own = path.read_bytes().splitlines(keepends=True)
    begun = max(i for i, line in enumerate(own) if b'"name":"refold.child"' in line)
    path.write_bytes(b"".join(own[: begun + 1]))
    return path


def test_a_fork_of_a_run_whose_child_waits_takes_what_the_child_had(tmp_path: Path) -> None:
    calls: list[str] = []

    class Counting(Worker):
        async def count(self, text: str) -> str:
            calls.append(text)
            return text

        def __init__(self) -> None:
            self.tools = {**Worker.tools, "count": self.count}

    engine = Engine(Boss(Counting()), traces=tmp_path, seed=1)
    result = engine.run("count:a ask:b count:c")
    fork = engine.fork(result.trace, reuse_effects=True)
    assert calls == ["a"]
    (request,) = fork.waiting
    fork = engine.resume(fork.trace, "B", request=request.id)
    assert without_ids(fork)["said"] == ["completed: a B c"]
    assert calls == ["a", "c"]
    assert engine.verify(fork.trace) == []
    done = engine.resume(result.trace, "B")
    assert without_ids(done) == without_ids(fork)


def test_resuming_without_an_answer_waits_on_and_writes_nothing(tmp_path: Path) -> None:
    engine = Engine(Boss(), traces=tmp_path)
    result = engine.run("note:a ask:b")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    again = engine.resume(result.trace)
    assert [request.id for request in again.waiting] == [request.id for request in result.waiting]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before


@pytest.mark.parametrize("killed", [False, True])
def test_a_deadline_that_has_passed_holds_for_the_child_though_the_clock_is_set_back(
    killed: bool, tmp_path: Path
) -> None:
    """The parent has recorded that nobody answered; by the wall clock, the child could still be answered."""
    seen = dict.fromkeys(("wait", "input", "set back"), False)

    class Clock:
        monotonic = staticmethod(time.monotonic)

        def time(self) -> float:
            return 1e9 - 1000.0 * seen["set back"]

    class Asks(AgentModule[Log]):
        def init_state(self, task: str) -> Log:
            return Log()

        async def decide(self, state: Log) -> Decision:
            return Decision.final(f"answer {await ask('sure?', schema=bool, seconds=0.02)}")

        def reduce(self, state: Log, decision: Decision, observation: Observation) -> None:
            state.said.append("asked")

    async def call() -> str:
        return str((await run_child(Asks(), "t")).final_result)

    @effect(idempotent=True)
    async def beside() -> str:
        with anyio.fail_after(60):
            while not seen["input"]:
                seen["set back"] = seen["wait"]
                await anyio.sleep(0.001)
        return "beside"

    class Beside(AgentModule[Log]):
        tools = {"call": call, "beside": beside}

        def init_state(self, task: str) -> Log:
            return Log()

        def decide(self, state: Log) -> Decision:
            if state.said:
                return Decision.final(" ".join(state.said))
            return Decision.act([Action("call"), Action("beside")])

        def reduce(self, state: Log, decision: Decision, observation: Observation) -> None:
            state.said += [str(result.output) for result in observation.results]

    def note(record: Any) -> None:
        seen[record.kind] = True

    def engine() -> Engine[Log]:
        return Engine(Beside(), traces=tmp_path, observers=[note], clock=Clock())

    result = engine().run("hi")
    if killed:  # after the deadline, before the child was told
        path = result.trace.path
        assert path is not None
        lines = path.read_bytes().splitlines(keepends=True)
        cut = next(i for i, line in enumerate(lines) if b'"kind":"input"' in line)
        path.write_bytes(b"".join(lines[: cut + 1]))
        (child,) = branches_folder(path).glob("*.trace.jsonl")
        lines = child.read_bytes().splitlines(keepends=True)
        cut = next(i for i, line in enumerate(lines) if b'"kind":"end"' in line)
        child.write_bytes(b"".join(lines[: cut + 1]))
        result = engine().resume(path)
    assert result.final_result == "answer None beside"
    assert len([record for record in result.trace.records if record.kind == "wait"]) == 1
    child_trace = result.trace.relative(result.trace.children[0].run_id)
    assert [record.get("expired") is None for record in child_trace.records if record.kind == "input"] == [False]
