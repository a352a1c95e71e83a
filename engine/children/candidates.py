"""The child runs of candidates: each carries out one candidate from a state of another run, in its own trace.

The child's trace starts with a reference to that state, and the child with the state object itself, so nothing is
copied. A child's id depends only on its place in the tree, so a resumed run finds the children that it had.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import TraceNotFoundError
from ...tasks import Environment, Task, use_environment
from ...traces import Trace
from ...traces.analysis.locate import branches_folder
from ...traces.file.store import SUFFIX
from ...traces.file.writer import TraceWriter
from ..effects.budget import Account, EndedFromAbove
from ..endings import RunStatus, StopReason
from ..loop.decision import Decision
from ..replay.reuse import Reuse
from ..result import UNANSWERED, RunFailure, RunResult, WaitRequest
from ..run.finish import finish
from ..run.header import header_of
from ..run.live_run import STATES, LiveRun
from ..run.resume import prepare_resume, used_so_far
from ..run.runner import Runner
from .on_behalf import answers_for
from .parent import Birth, ChildEnd, Earlier, Stand

if TYPE_CHECKING:
    from ..engine import Engine


class Explores(Protocol):
    """The explorer of one run, as far as its parent knows it."""

    def stop(self, why: EndedFromAbove) -> None:
        """End the run, and the child runs that it explores."""


ExplorerOf = Callable[["Engine", Runner, Environment | None], Explores]
_BUDGETS = frozenset((StopReason.budget_time, StopReason.budget_tokens, StopReason.budget_cost))


class ChildRuns:
    """The candidates' runs of one run: starts or resumes each, and returns its end."""

    def __init__(self, engine: "Engine", runner: Runner, earlier: Earlier, explorer: ExplorerOf) -> None:
        self._engine = engine
        self._explorer = explorer
        self._run = runner.run
        self._task: Task = runner.task
        self._document = runner.task.to_dict()
        self._on_divergence = runner.on_divergence
        self._earlier = earlier
        self._trace: Trace | None = None
        self._live: dict[str, Explores] = {}

    async def bring(self, birth: Birth) -> ChildEnd:
        """Run a child up to its limit and return its end; one with a trace is resumed, or not run again if it ended."""
        waits = self._run.waits
        waits.busy += 1
        try:
            trace = self._begun(birth)
            if trace is None:
                end = await self._begin(birth)
            else:
                end = self._ended(trace, birth) or await self._go_on(birth, {})
            while end.waiting:
                end = await self._go_on(birth, await answers_for(self._run, end.waiting, {"run": birth.run_id}))
            return end
        finally:
            waits.busy -= 1
            waits.changed()
            self._live.pop(birth.run_id, None)

    def stop(self, why: EndedFromAbove) -> None:
        """End the children at work, and their children."""
        for child in self._live.values():
            child.stop(why)

    # the trace of an earlier attempt

    def _path(self, run_id: str) -> Path | None:
        path = self._run.writer.path
        return None if path is None else branches_folder(path) / f"{run_id}{SUFFIX}"

    def _begun(self, birth: Birth) -> Trace | None:
        """Return the child's trace, if an earlier attempt has started one with at least one whole record.

        A crash may have lost the end of the run's own trace, so that a child's file exists without a record of its
        start. Such a file belongs to this child if it starts in the same way; otherwise it is renamed.
        """
        known, path = birth.run_id in self._earlier.opened, self._path(birth.run_id)
        if not known if path is None else not path.exists():
            return None
        if self._trace is None:
            self._trace = self._run.writer.trace()  # kept, so that the first state of its relatives is computed once
        try:
            found = self._trace.relative(birth.run_id)
        except TraceNotFoundError:
            return None
        if path is not None and not len(found.records):
            path.unlink()
            return None
        if not known:
            assert path is not None
            if not birth.is_of(found, self._trace.relative(birth.stand.run_id)):
                free = next(n for n in count(1) if not path.with_name(f"{path.name}.{n}").exists())
                path.rename(path.with_name(f"{path.name}.{free}"))
                return None
            self._run.account.add(used_so_far(found))
        return found

    def _ended(self, trace: Trace, birth: Birth) -> ChildEnd | None:
        """Return the end of an earlier attempt's child, or None if the child is to be resumed.

        A child stopped by a budget is resumed, as the budget may be larger now. A failed child has ended, unless the
        run has failed with it: like any failed run, it is then tried again.
        """
        status = trace.status
        again = status == RunStatus.failed and (self._earlier.failed or trace.first_state is None)
        if status not in (RunStatus.completed, RunStatus.stopped, RunStatus.failed) or again:
            return None
        if status == RunStatus.stopped and trace.stop_reason in _BUDGETS:
            return None
        return end_in(trace, self._engine, birth.stand)

    # a child at work

    async def _begin(self, birth: Birth) -> ChildEnd:
        engine, run, stand = self._engine, self._run, birth.stand
        link = birth.link
        path = self._path(birth.run_id)
        with TraceWriter.create(path, durability=engine.durability, parent=run.writer) as writer:
            child = self._child(birth, writer)
            if birth.model is not None and stand.reuse is not None:
                answers = run.reuse.answers(run.step) if run.reuse is not None else {}
                child.reuse = stand.reuse.child(birth.model, answers, child.tell_live)
                link |= {"reuse_effects": child.reuse.link(path)}
            budget = run.account.budget
            child.write("header", 0, header_of(birth.run_id, engine.module, self._document, budget, run.seed, link))
            return await self._drive(self._runner(child), birth)

    async def _go_on(self, birth: Birth, answers: dict[str, Any]) -> ChildEnd:
        engine, run = self._engine, self._run
        resumption = await prepare_resume(
            engine.module,
            self._path(birth.run_id) or run.writer.trace().relative(birth.run_id),
            run.account.budget,
            engine.durability,
            answers or UNANSWERED,
            None,
            self._on_divergence,
            engine.clock,
            birth.stand.redactor,
            engine.on_wait,
            child=True,
        )
        with resumption.writer as writer:
            if resumption.done is not None:
                return end_in(resumption.done.trace, engine, birth.stand)
            child = self._child(birth, writer)
            runner = self._runner(child)
            resumption.enter(child, runner)
            return await self._drive(runner, birth)

    def _child(self, birth: Birth, writer: TraceWriter) -> LiveRun:
        run = self._run
        account = Account(run.account.budget, lambda what, used, limit: None, run.account)
        redactor = birth.stand.redactor.copy() if birth.stand.redactor is not None else None
        on_wait = self._engine.on_wait
        child = LiveRun(birth.run_id, run.seed, writer, account, run.clock, redactor, (), on_wait, birth.path)
        child.waits.parent, child.engine = run.waits, self._engine
        return child

    def _runner(self, child: LiveRun) -> Runner:
        return Runner(self._engine.module, self._task, child, self._engine.stop, None)

    async def _drive(self, runner: Runner, birth: Birth) -> ChildEnd:
        """Run the child until its end is written; raise a cancellation, or a failed write, again."""
        child, stand = runner.run, birth.stand
        if runner.held.state is None:
            child.write("snapshot", 0, {"base": {"run": stand.run_id, "step": stand.step}})
            runner.held.state = stand.state
        runner.snapshot_bytes = max(runner.snapshot_bytes, stand.weight)
        if child.step == 0 and runner.recorded_decision is None:  # otherwise the trace has the candidate already
            runner.candidate = (birth.candidate, birth.number)
        runner.limit = birth.limit
        self._live[birth.run_id] = self._explorer(self._engine, runner, birth.environment)
        with use_environment(birth.environment):
            outcome = await runner.work()
            result = await finish(child, self._task, runner.held.state, outcome, None, evaluate=False)
        if outcome.raised is not None:
            raise outcome.raised
        if child.writer.failed is not None:
            raise child.writer.failed  # a full disk says nothing about the candidate
        return _end_of(runner, outcome.reason, result)


def _end_of(runner: Runner, reason: StopReason, result: RunResult) -> ChildEnd:
    """Return the end of a child that has just run."""
    run, error, cut = runner.run, None, None
    if result.status is RunStatus.failed:
        error = str(result.error or reason)
    if reason in _BUDGETS and (run.stopping is not None or run.account.used_up() is not None):
        cut = reason
    weight = runner.snapshot_bytes + runner.patch_bytes
    stand = Stand(run.run_id, run.step, runner.held.state, run.state_hash, run.path, weight, run.redactor, run.reuse)
    return ChildEnd(stand, runner.candidates, reason, error, cut, tuple(result.waiting))


def end_in(trace: Trace, engine: "Engine", before: Stand) -> ChildEnd:
    """Return the end of a child from its trace; the child started from `before`."""
    step = trace.unfinished
    decision = step.decision if step is not None else None
    several = decision.get("candidates") if decision is not None and decision["mode"] == "branch" else None
    error = None
    if trace.status == RunStatus.failed:
        told = trace.end.get("error")
        error = str(RunFailure.from_dict(told) if told else trace.stop_reason)
    records = [r for r in trace.records if r.kind in STATES]
    state = engine.module.state_class.from_dict(trace.state(-1))
    weight, path, reuse = before.weight + trace.size, trace.header["parent"]["path"], Reuse.of(trace)
    last = records[-1].hash if records else None
    return ChildEnd(
        Stand(trace.run_id, trace.step_count, state, last, path, weight, before.redactor, reuse),
        tuple(Decision.from_dict(each) for each in several) if isinstance(several, list) else (),
        StopReason(trace.stop_reason or StopReason.waiting),
        error,
        None,
        tuple(WaitRequest.from_dict(each) for each in trace.waiting),
    )
