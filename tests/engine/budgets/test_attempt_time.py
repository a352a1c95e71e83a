"""Time is one account for all attempts: that of killed ones counts, and a run at work says so."""

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RuntimeBudget,
    StateSchema,
    StopReason,
    Trace,
    effect,
    perform_sync,
)
from refold.engine.run import runner, time_limit
from refold.engine.run.start.usage import BEAT_SECONDS
from refold.errors import TraceWriteError


class Count(StateSchema):
    n: int = 0


class HandClock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class SetClock(HandClock):
    """A clock whose wall time is set by hand, and whose monotonic time only goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = 0.0

    def time(self) -> float:
        return self.now + self.set_by


class Works(AgentModule[Count]):
    """Calls one tool a step, so many times."""

    def __init__(self, tool: Any, steps: int = 1) -> None:
        self.tools = {"work": tool}
        self.last = steps

    def init_state(self, task: str, **inputs: Any) -> Count:
        return Count()

    def decide(self, state: Count) -> Decision:
        return Decision.final("done") if state.n == self.last else Decision.act([Action("work")])

    def reduce(self, state: Count, decision: Decision, observation: Observation) -> None:
        state.n += 1


@pytest.mark.parametrize("killed_after", [0.4, 0.6, 3.0, 30.0])
def test_the_time_of_killed_attempts_counts(killed_after: float, tmp_path: Path) -> None:
    clock, folder, copies = HandClock(), tmp_path / "runs", [0]

    @effect(idempotent=True)
    def work() -> None:
        clock.now += killed_after
        copies[0] += 1
        path = next(folder.glob("*.trace.jsonl"))
        shutil.copy(path, tmp_path / f"{copies[0]}.trace.jsonl")  # what a process killed now leaves

    engine = Engine(Works(work), traces=folder, clock=clock, budget=RuntimeBudget(max_runtime_seconds=8.0))
    engine.run("t")
    for attempt in range(1, 100):
        left = tmp_path / f"{attempt}.trace.jsonl"
        shutil.rmtree(folder)
        folder.mkdir()
        resumed = folder / left.name
        shutil.copy(left, resumed)
        result = engine.resume(resumed)
        if result.stop_reason == StopReason.budget_time:
            break
    else:
        raise AssertionError("a call that kills its process each time never meets the wall")
    counted = min(killed_after, BEAT_SECONDS)
    assert result.usage.seconds == pytest.approx(attempt * counted + killed_after, abs=0.1)


def test_a_clock_that_is_set_back_gives_no_time_back(tmp_path: Path) -> None:
    """Neither the time of earlier steps, nor what the killed attempt had worked before and after."""
    clock = SetClock()

    @effect(idempotent=True)
    def work() -> None:
        clock.now += 3.0
        perform_sync(look)
        calls.append(None)
        if len(calls) == 2:
            clock.set_by -= 1000.0
            clock.now += 2.0
            perform_sync(look)
            shutil.copy(next((tmp_path / "runs").glob("*.trace.jsonl")), tmp_path / "killed.trace.jsonl")

    @effect(idempotent=True)
    def look() -> None:
        clock.now += 1.0

    calls: list[None] = []
    engine = Engine(Works(work, 2), traces=tmp_path / "runs", clock=clock)
    engine.run("t")
    first = Trace.load(tmp_path / "killed.trace.jsonl").records
    assert [record["seconds"] for record in first if record.kind == "commit"] == [4.0]
    clock.set_by = -5000.0
    result = engine.resume(tmp_path / "killed.trace.jsonl")
    resumed = next(record for record in result.trace.records if record.kind == "resume")
    assert resumed["seconds"] == pytest.approx(9.0), "4 of the first step, and all but 2 of the second"


def test_waiting_in_a_killed_attempt_does_not_count(tmp_path: Path) -> None:
    clock = HandClock()

    class Asks(Works):
        def decide(self, state: Count) -> Decision:
            return Decision.final("done") if state.n else Decision.wait(prompt="?")

    def think(request: Any) -> Any:
        clock.now += 100.0
        path = next((tmp_path / "runs").glob("*.trace.jsonl"))
        shutil.copy(path, tmp_path / "killed.trace.jsonl")
        return "yes"

    engine = Engine(Asks(lambda: None), traces=tmp_path / "runs", clock=clock, on_wait=think)
    engine.run("t")
    result = engine.resume(tmp_path / "killed.trace.jsonl", "yes")
    assert result.status == "completed"
    assert result.usage.seconds == 0.0


def test_a_run_that_writes_nothing_else_says_that_it_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "BEAT_SECONDS", 0.01)
    beats = [0]

    async def work() -> None:
        with anyio.fail_after(250):
            while beats[0] < 3:
                await anyio.sleep(0.005)

    def seen(record: Any) -> None:
        beats[0] += record.kind == "event" and record["name"] == "refold.beat"

    engine = Engine(Works(work), observers=[seen], seed=1)
    result: RunResult = anyio.run(lambda: engine.arun("t"))
    assert result.status == "completed"
    result.trace.check()
    assert engine.verify(result.trace) == []
    assert result.trace.steps[0].events == [], "beats are no events of the module"
    assert result.trace.diff(Engine(Works(work), seed=1).run("t").trace).differences == ()
    again = engine.fork(result.trace, 0, reuse_effects=True)
    assert again.state == result.state


def test_a_run_that_waits_does_not_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "BEAT_SECONDS", 0.001)
    records: list[str] = []

    class Asks(Works):
        def decide(self, state: Count) -> Decision:
            return Decision.final("done") if state.n else Decision.wait(prompt="?")

    async def think(request: Any) -> Any:
        before = len(records)
        await anyio.sleep(0.05)
        assert records[before:] == []
        return "yes"

    engine = Engine(Asks(lambda: None), on_wait=think, observers=[lambda record: records.append(record.kind)])
    assert engine.run("t").status == "completed"


def test_a_beat_that_cannot_be_written_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "BEAT_SECONDS", 0.02)

    async def work() -> None:
        next(tmp_path.glob("*.trace.jsonl")).unlink()
        await anyio.sleep(60)

    result = Engine(Works(work), traces=tmp_path).run("t")
    assert (result.status, result.error and result.error.type) == ("failed", TraceWriteError.__name__)


def test_a_deadline_takes_off_what_earlier_attempts_have_used(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[float] = []
    later = vars(time_limit)["later"]

    def noted(seconds: float, call: Any) -> Any:
        set_to.append(seconds)
        return later(seconds, call)

    monkeypatch.setattr(time_limit, "later", noted)
    clock = HandClock()

    def work() -> None:
        clock.now += 30.0

    engine = Engine(Works(work, 2), clock=clock, budget=RuntimeBudget(max_steps=1, max_runtime_seconds=100.0))
    first = engine.run("t")
    assert 100.0 in set_to
    set_to.clear()
    engine.resume(first.trace, budget=RuntimeBudget(max_steps=9, max_runtime_seconds=100.0))
    assert 70.0 in set_to, "of 100 seconds an earlier attempt has used 30"


def test_hooks_that_never_wait_let_others_have_their_turn_each_few_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, turns = [0.0], [0]
    monkeypatch.setattr(runner, "perf_counter", lambda: clock[0])

    class Busy(AgentModule[Count]):
        def init_state(self, task: str, **inputs: Any) -> Count:
            return Count()

        async def decide(self, state: Count) -> Decision:
            clock[0] += 0.002
            return Decision.final("done") if state.n == 50 else Decision.act([Action("none")])

        def reduce(self, state: Count, decision: Decision, observation: Observation) -> None:
            state.n += 1

    async def main() -> None:
        over = anyio.Event()

        async def run() -> None:
            await Engine(Busy(), budget=RuntimeBudget(max_steps=100)).arun("t")
            over.set()

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while not over.is_set():
                turns[0] += 1
                await anyio.sleep(0)

    anyio.run(main)
    assert turns[0] >= 50 // 3, "100 ms of steps that never wait make way every 5 ms"
