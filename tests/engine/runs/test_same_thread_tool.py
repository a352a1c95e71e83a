"""A sync tool may run in the thread of its `decide`: only the threads differ, and a run that is cut starts nothing.

A run with an observer always changes threads twice, so it serves as the one to compare with.
"""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from timing import SOON, StandingClock

from refold import (
    Action,
    AgentModule,
    Decision,
    Engine,
    Observation,
    RunResult,
    RunStatus,
    RuntimeBudget,
    StateSchema,
    StopReason,
    Task,
    bind,
    call_info,
    effect,
    emit,
    new_id,
    perform_sync,
    rng,
)
from refold.engine.concurrency import threads as workers
from refold.engine.run.live_run import LiveRun
from refold.errors import TraceWriteError

VARIES = {"at", "hash", "seconds", "duration", "traceback", "run_id", "key"}
MARK: ContextVar[str] = ContextVar("a user's variable", default="none")


class Seen(StateSchema):
    results: list[list[Any]] = []


class Scripted(AgentModule[Seen]):
    """Asks for one tool a step, by the names given; `idents` has the threads of decide and tools."""

    def __init__(self, names: list[str], **tools: Callable[..., Any]) -> None:
        self.names, self.tools = names, tools
        self.idents: list[int] = []

    def init_state(self, task: str, **inputs: Any) -> Seen:
        return Seen()

    def decide(self, state: Seen) -> Decision:
        self.idents.append(threading.get_ident())
        MARK.set("decide")
        emit("deciding", step=state.current_step, drawn=rng().random())
        if state.current_step == len(self.names):
            return Decision.final("done")
        name = self.names[state.current_step]
        return Decision.act([Action(name, {} if name != "wants" else {"wrong": 1})], rationale="why")

    def reduce(self, state: Seen, decision: Decision, observation: Observation) -> None:
        state.results.extend([r.name, r.output, r.error, r.error_type] for r in observation.results)


def look() -> dict[str, Any]:
    info = call_info()
    emit("looking", mark=MARK.get(), phase=info.phase, step=info.step)
    return {"id": new_id(), "mark": MARK.get(), "inner": perform_sync(half, 8)}


@effect
def half(n: int) -> int:
    return n // 2


def raises() -> str:
    raise ValueError("no")


def exits() -> str:
    raise SystemExit(3)


def stops() -> str:
    raise StopIteration("early")


def wants(right: int) -> int:
    return right


def no_json() -> Any:
    return 1j


async def waits() -> str:
    await anyio.sleep(0)
    return "waited"


@effect(timeout=5)
def timed() -> str:
    return "in time"


TOOLS: dict[str, Callable[..., Any]] = {
    "look": look,
    "raises": raises,
    "exits": exits,
    "stops": stops,
    "wants": wants,
    "no_json": no_json,
    "waits": waits,
    "timed": timed,
}
EACH_TWICE = [name for name in (*TOOLS, "missing") for _ in (0, 1)]
"""The first call of a tool never goes on, the second may."""


def records(result: RunResult[Any]) -> list[Any]:
    """The records without what differs between any two runs."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items() if name not in VARIES}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return [plain(orjson.loads(record.raw)) for record in result.trace.records]


def run(module: AgentModule[Any], *, twice: bool = False, **options: Any) -> RunResult[Any]:
    if twice:
        options["observers"] = [lambda record: None]
    engine = Engine(module, seed=1, **options)

    async def main() -> RunResult[Any]:
        return await engine.arun(Task(id="a", objective="look"))

    return anyio.run(main)


def test_the_records_are_those_of_a_step_that_changes_threads_twice() -> None:
    budget = RuntimeBudget(max_steps=50)
    one = run(Scripted(EACH_TWICE, **TOOLS), budget=budget)
    two = run(Scripted(EACH_TWICE, **TOOLS), budget=budget, twice=True)
    assert one.status is RunStatus.completed, one.error
    mine, others = records(one)[1:], records(two)[1:]
    assert mine == others
    assert one.state == two.state


def test_decide_and_its_tool_share_a_thread_from_the_tools_second_call_on() -> None:
    seen: list[int] = []

    def where() -> None:
        seen.append(threading.get_ident())

    module = Scripted(["where"] * 4, where=where)
    changes: list[Any] = []
    give = workers._pool.give

    def counted(job: Any) -> None:
        changes.append(job.fn)
        give(job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers._pool, "give", counted)
        assert run(module).status is RunStatus.completed
    assert [fn.__name__ for fn in changes] == ["init_state", "decide", "where", *["decide"] * 4]
    assert seen[1:] == module.idents[1:4]


def test_secrets_are_kept_out_of_a_decision_that_goes_on() -> None:
    def told(word: str) -> str:
        return word

    class Telling(Scripted):
        def decide(self, state: Seen) -> Decision:
            if state.current_step == 2:
                return Decision.final("done")
            return Decision.act([Action("told", {"word": "hunter2hunter2"})])

    result = run(Telling([], told=told), redact={"PASSWORD": "hunter2hunter2"})
    assert result.state.results == [["told", "<redacted:PASSWORD>", None, None]] * 2
    assert all(b"hunter2hunter2" not in record.raw for record in result.trace.records)


def test_such_a_trace_is_verified_replayed_and_resumed_at_every_record(tmp_path: Path) -> None:
    names = ["look", "look", "look"]
    engine = Engine(Scripted(names, look=look), seed=1, traces=tmp_path)
    whole = engine.run(Task(id="a", objective="look"))
    assert engine.verify(whole.trace) == []
    assert whole.trace.path is not None
    lines = whole.trace.path.read_bytes().splitlines(keepends=True)
    for n in range(2, len(lines)):
        cut = tmp_path / f"cut{n}.trace.jsonl"
        cut.write_bytes(b"".join(lines[:n]))
        again = Engine(Scripted(names, look=look), seed=1, traces=tmp_path, on_wait=lambda request: {"retry": True})
        resumed = again.resume(cut)
        assert resumed.status is RunStatus.completed, (n, resumed.error)
        assert resumed.state == whole.state, n


@pytest.mark.parametrize("twice", [False, True])
def test_a_decision_that_cannot_be_written_is_an_error_of_decide(twice: bool) -> None:
    class Wrong(Scripted):
        def decide(self, state: Seen) -> Any:
            if state.current_step == 2:
                return "look"
            return super().decide(state)

    failed = run(Wrong(["look"] * 3, look=look), twice=twice)
    assert failed.error is not None
    assert (failed.error.type, failed.error.phase, failed.error.step) == ("DecisionError", "decide", 2)
    assert [r.kind for r in failed.trace.records if r.kind != "snapshot"][-2:] == ["commit", "end"]


@pytest.mark.parametrize("twice", [False, True])
def test_a_call_that_cannot_be_started_is_an_error_of_act(twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    before = LiveRun.open

    def second_fails(self: LiveRun, call: Any) -> None:
        opened.append(call)
        if len(opened) == 2:
            raise TraceWriteError("the disk is full")
        before(self, call)

    def waits_for_nothing() -> None:
        pass

    monkeypatch.setattr(LiveRun, "open", second_fails)
    failed = run(Scripted(["waits_for_nothing"] * 3, waits_for_nothing=waits_for_nothing), twice=twice)
    assert failed.error is not None
    assert (failed.error.type, failed.error.phase, failed.error.step) == ("TraceWriteError", "act", 1)
    assert [r.kind for r in failed.trace.records if r.step == 1 and r.kind != "event"] == ["decide", "end"]


class Held(Scripted):
    """Its step 1 holds in `decide` or in the tool, whichever is asked, until `release`."""

    def __init__(self, where: str) -> None:
        super().__init__(["hold", "hold"], hold=self.hold)
        self.where, self.calls = where, 0
        self.entered, self.release, self.left = threading.Event(), threading.Event(), threading.Event()
        self.late: list[str] = []
        self.workers: list[threading.Thread] = []

    def decide(self, state: Seen) -> Decision:
        decision = super().decide(state)
        if self.where == "decide" and state.current_step == 1:
            self._hold()
        return decision

    def hold(self) -> str:
        self.calls += 1
        if self.where == "tool" and self.calls == 2:
            self._hold()
        return "held"

    def _hold(self) -> None:
        self.workers.append(threading.current_thread())
        self.entered.set()
        self.release.wait()
        try:
            perform_sync(half, 2)
        except RuntimeError as error:
            self.late.append(type(error).__name__)
        finally:
            self.left.set()


def settled(module: Held) -> None:
    """Let the abandoned thread go, and wait until it has nothing left to do."""
    module.release.set()
    module.left.wait()
    (worker,) = module.workers
    while worker.is_alive() and worker not in workers._pool._idle:
        threading.Event().wait(0.01)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("where", ["decide", "tool"])
def test_a_deadline_leaves_the_thread_which_starts_and_writes_nothing_any_more(where: str, twice: bool) -> None:
    module = Held(where)
    result = run(
        module, twice=twice, budget=RuntimeBudget(max_runtime_seconds=SOON), clock=StandingClock(module.entered.is_set)
    )
    assert module.entered.is_set()
    assert result.stop_reason is StopReason.budget_time
    written = len(result.trace.records)
    settled(module)
    assert len(result.trace.records) == written
    assert module.calls == (1 if where == "decide" else 2)
    assert module.late == ["RunClosedError"]
    step = [r for r in records(result) if r["step"] == 1 and r["kind"] != "event"]
    if where == "decide":
        assert [r["kind"] for r in step] == ["end"]
    else:
        assert [r["kind"] for r in step] == ["decide", "intent", "outcome", "end"]
        assert step[2]["cancelled"]
        assert step[2]["error"]["message"] == "the run was cancelled, or ran into a budget, before the call ended"


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("where", ["decide", "tool"])
def test_a_cancelled_run_ends_in_the_phase_of_its_thread(where: str, twice: bool) -> None:
    module = Held(where)
    engine = Engine(module, seed=1, observers=[lambda record: None] if twice else [])
    ended: list[RunResult[Any]] = []

    async def main() -> None:
        task = asyncio.ensure_future(engine.arun(Task(id="a", objective="look")))
        while not module.entered.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            ended.append(error.result)  # type: ignore[attr-defined]

    asyncio.run(main())
    settled(module)
    (result,) = ended
    assert result.status is RunStatus.cancelled
    assert result.error is not None
    assert result.error.phase == ("decide" if where == "decide" else "act")
    kinds = [r.kind for r in result.trace.records if r.step == 1 and r.kind != "event"]
    assert kinds == (["end"] if where == "decide" else ["decide", "intent", "outcome", "end"])
    assert module.late == ["RunClosedError"]


@pytest.mark.parametrize("twice", [False, True])
def test_a_tool_that_has_its_run_s_task_cancelled_has_an_error_result_and_the_run_goes_on(twice: bool) -> None:
    tasks: list[asyncio.Task[Any]] = []
    cancelling: list[int] = []

    def cancels() -> str:
        this = next(task for task in asyncio.all_tasks(loop[0]) if "whole" in task.get_name())
        tasks.append(this)
        loop[0].call_soon_threadsafe(this.cancel)
        threading.Event().wait(0.05)
        return "not cancelled"

    loop: list[asyncio.AbstractEventLoop] = []

    class Here(Scripted):
        async def init_state(self, task: str, **inputs: Any) -> Seen:  # type: ignore[override]
            loop.append(asyncio.get_running_loop())
            return Seen()

        def reduce(self, state: Seen, decision: Decision, observation: Observation) -> None:
            super().reduce(state, decision, observation)
            if tasks:
                cancelling.append(tasks[-1].cancelling())

    result = run(Here(["cancels"] * 3, cancels=cancels), twice=twice)
    assert result.status is RunStatus.completed, result.error
    assert [r[3] for r in result.state.results] == ["RuntimeError"] * 3
    assert set(cancelling) == {0}


@pytest.mark.parametrize("twice", [False, True])
def test_a_thread_that_decide_has_left_behind_performs_nothing_in_the_tools_time(twice: bool) -> None:
    go, ended = threading.Event(), threading.Event()
    refused: list[str] = []

    def late() -> None:
        go.wait()
        try:
            perform_sync(half, 4)
        except RuntimeError as error:
            refused.append(type(error).__name__)
        ended.set()

    class Leaving(Scripted):
        def decide(self, state: Seen) -> Decision:
            if state.current_step == 1:
                threading.Thread(target=bind(late), daemon=True).start()
            return super().decide(state)

    calls: list[int] = []

    def opens() -> str:
        calls.append(1)
        if len(calls) == 2:
            go.set()
            ended.wait()
        return "opened"

    result = run(Leaving(["opens", "opens"], opens=opens), twice=twice)
    assert result.status is RunStatus.completed, result.error
    assert refused == ["CallClosedError"]


def test_a_job_that_is_cancelled_before_it_goes_on_does_not_and_one_cancelled_after_ends_both() -> None:
    """Both sides of the gate: `then` is never called for an abandoned job, and its call is abandoned with it."""
    called: list[str] = []

    async def before() -> None:
        hold, entered = threading.Event(), threading.Event()

        def first() -> None:
            entered.set()
            hold.wait()

        job: Any = workers.in_thread(first, {}, lambda job, value: called.append("then"))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        job.cancel()
        hold.set()
        while not job.over:
            await asyncio.sleep(0.001)
        assert called == []

    async def after() -> None:
        hold, entered = threading.Event(), threading.Event()
        further: list[Any] = []

        def second() -> None:
            entered.set()
            hold.wait()

        job: Any = workers.in_thread(lambda: 1, {}, lambda job, value: further.append(job.go_on(second, {})))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        job.cancel()
        assert job.cancelled()
        assert further[0].cancelled()
        hold.set()

    async def neither() -> None:
        def then(job: Any, value: Any) -> None:
            job.go_on(lambda: value + 1, {})

        job: Any = workers.in_thread(lambda: 1, {}, then)
        assert await job == 1
        assert job.further.result() == 2

    async def fails() -> None:
        def then(job: Any, value: Any) -> None:
            raise LookupError("then")

        with pytest.raises(LookupError, match="then"):
            await workers.in_thread(lambda: 1, {}, then)

    for each in (before, after, neither, fails):
        asyncio.run(each())
