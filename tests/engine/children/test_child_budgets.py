"""Child runs spend from their run's budget: a share of it, by its deadline, and no longer than it lives."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from processes import ended
from timing import SOON, StandingClock
from toys.workers import Boss, Worker, children_of

from refold import (
    Engine,
    RunStatus,
    RuntimeBudget,
    StopReason,
    TaskBudget,
    Trace,
    charge,
    effect,
)
from refold.engine import CallUsage


def lines(count: int, words: str) -> str:
    return "\n".join(f"{words} note:{i}" for i in range(count))


def test_ten_children_with_a_thousand_tokens_left_spend_a_thousand_together() -> None:
    async def main() -> None:
        engine = Engine(Boss(), budget=RuntimeBudget(max_tokens=1000))
        result = await engine.arun(lines(10, " ".join(f"note:{i}" for i in range(14))))
        assert result.usage.tokens == 1000
        assert (result.status, result.stop_reason) == (RunStatus.stopped, StopReason.budget_tokens)
        children = children_of(result.trace)
        assert sum(child.end["usage"]["tokens_in"] + child.end["usage"]["tokens_out"] for child in children) == 1000
        assert {child.status for child in children} <= {"stopped", "completed"}
        assert any(child.stop_reason == "budget_tokens" for child in children)
        assert await engine.averify(result.trace) == []
        for child in children:
            assert await Engine(Worker()).averify(child) == []

    anyio.run(main)


@pytest.mark.parametrize("share", [RuntimeBudget(max_tokens=25), TaskBudget(max_tokens=25)], ids=["runtime", "task"])
def test_a_share_is_the_most_of_it_that_a_child_may_have(share: Any) -> None:
    boss = Boss(budget=share)
    result = Engine(boss, budget=RuntimeBudget(max_tokens=1000)).run(lines(3, "note:x note:y"))
    assert result.status is RunStatus.completed
    assert {child.usage.tokens for child in boss.seen} == {20}
    assert {child.stop_reason for child in boss.seen} == {StopReason.budget_tokens}
    assert result.usage.tokens == 60
    warned = [r["data"]["what"] for c in children_of(result.trace) for r in c.records if r.kind == "event"]
    assert warned == ["tokens"] * 3, "80 % of its share is told in the child's trace"


def test_money_is_one_account_and_an_unknown_price_is_not_zero() -> None:
    result = Engine(Boss(), budget=RuntimeBudget(max_cost_usd=0.035)).run("note:a note:b note:c note:d note:e")
    assert result.stop_reason is StopReason.budget_cost
    assert result.usage.cost == pytest.approx(0.04)

    @effect(usage=lambda answer: CallUsage(1, 1, None))
    def unpriced(text: str) -> str:
        return text

    class Unpriced(Worker):
        tools = {**Worker.tools, "unpriced": unpriced}

    result = Engine(Boss(Unpriced()), budget=RuntimeBudget(max_cost_usd=10)).run("unpriced:a note:b")
    assert (result.stop_reason, result.usage.unpriced) == (StopReason.budget_cost, 1)


def test_steps_are_a_childs_own() -> None:
    boss = Boss()
    result = Engine(boss, budget=RuntimeBudget(max_steps=2)).run("note:a note:b note:c note:d")
    assert result.status is RunStatus.completed
    assert boss.seen[0].steps == 5
    assert result.usage.steps == 2


class Sleeper(Worker):
    """Can sleep, and start a process."""

    async def sleep(self, text: str) -> str:
        self.asleep = True
        await anyio.sleep(float(text))
        return "slept"

    def process(self, text: str) -> str:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(f"{text}.new").write_text(str(child.pid))
        Path(f"{text}.new").rename(text)
        child.wait()
        return "waited"

    def __init__(self) -> None:
        self.asleep = False
        self.tools = {**Worker.tools, "sleep": self.sleep, "process": self.process}


def assert_gone(pid: int) -> None:
    """The process has been killed; whoever waits for it may not have been told yet."""
    while not ended(pid):
        time.sleep(0.01)


def assert_closed(trace: Trace) -> None:
    """Every call has an outcome."""
    trace.check()
    ended = {record["intent"] for record in trace.records if record.kind == "outcome"}
    assert {record.seq for record in trace.records if record.kind == "intent"} == ended


def test_a_run_with_more_time_goes_on_with_the_children_it_had(tmp_path: Path) -> None:
    sleeper = Sleeper()
    clock = StandingClock(lambda: sleeper.asleep)
    engine = Engine(Boss(sleeper), budget=RuntimeBudget(max_runtime_seconds=SOON), traces=tmp_path, clock=clock)
    first = engine.run("note:a sleep:1.0 note:b")
    assert first.stop_reason is StopReason.budget_time
    waiting = engine.resume(first.trace, budget=RuntimeBudget(max_runtime_seconds=60))
    (fate,) = waiting.waiting
    assert (fate.details["name"], fate.details["child"]) == ("sleep", "sleeper")
    result = engine.resume(first.trace, {"retry": True}, budget=RuntimeBudget(max_runtime_seconds=60))
    assert result.state.said == ["completed: thought of a slept thought of b"]
    assert len(children_of(result.trace)) == 1
    assert result.usage.tokens == 20


def test_cancelling_the_run_cancels_its_children_with_their_books_closed(tmp_path: Path) -> None:
    async def main() -> Trace:
        engine = Engine(Boss(Boss(Sleeper())), traces=tmp_path)
        async with anyio.create_task_group() as group:

            async def run() -> None:
                try:
                    await engine.arun(f"note:a process:{tmp_path / 'pid'}")
                except BaseException as raised:
                    results.append(raised.result)  # type: ignore[attr-defined]
                    raise

            results: list[Any] = []
            group.start_soon(run)
            while not (tmp_path / "pid").exists():
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        trace: Trace = results[0].trace
        return trace

    trace = anyio.run(main)
    child = children_of(trace)[0]
    for each in (trace, child, children_of(child)[0]):
        assert each.status == "cancelled"
        assert_closed(each)
    assert_gone(int((tmp_path / "pid").read_text()))


def told(text: str) -> str:
    charge(tokens_in=1)
    return text
