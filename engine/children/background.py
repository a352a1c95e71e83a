"""Child runs that go on beside the steps of their run: begun by one call, looked at and waited for by others.

They are settled when the run ends: one that is to end by itself waits for them, within its budget, and asks what they
wait for; one that failed or was cancelled cancels them. A run that is resumed takes up those that had not ended.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from ...tasks import Task
from ...traces import Record, Trace, TraceError, TraceNotFoundError
from ...traces.analysis.children import begun_children
from ..concurrency.jobs import Job
from ..concurrency.several import several
from ..effects.budget import RuntimeBudget
from ..effects.call import Call
from ..effects.journal import STARTED
from ..effects.usage import RunUsage
from ..errors import EngineUsageError
from ..module import AgentModule
from ..result import RunResult
from ..run.resume import started_in, used_so_far
from .child_result import ChildResult, Reads
from .child_run import InnerRun, Place, told_as_its_own
from .parent import child_id

if TYPE_CHECKING:
    from ..run.live_run import LiveRun


class Beside:
    """One child run that goes on beside the steps."""

    def __init__(self, inner: InnerRun) -> None:
        self.inner = inner
        self._turn = anyio.Lock()
        self._job = self._begin(inner.advance())

    def _begin(self, work: Any) -> Job[RunResult]:
        async def told() -> RunResult:
            with told_as_its_own(self.inner.run_id):
                result: RunResult = await work
                return result

        return Job(told, self.inner.run.context.copy())

    async def paused(self) -> None:
        """Waits until it has ended, or waits itself."""
        await self._job.wait()

    async def ended(self) -> RunResult:
        """Waits for its end; asks what it waits for."""
        async with self._turn:
            while True:
                await self._job.wait()
                result = self._job.result()
                if not result.waiting:
                    return result
                answers = await self.inner.answers(result.waiting)
                self._job = self._begin(self.inner.go_on(answers))

    def standing(self, read: Reads) -> ChildResult:
        """How it stands now."""
        if self._job.over:
            return ChildResult.of(self._job.result(), read)
        trace = self.trace
        if trace is None:
            return ChildResult(self.inner.run_id, None)
        return ChildResult(self.inner.run_id, None, steps=trace.step_count, usage=used_so_far(trace))

    @property
    def trace(self) -> Trace | None:
        """Its trace; None before it has one."""
        try:
            trace = self.inner.run.writer.trace().relative(self.inner.run_id)
        except TraceError:
            return None
        return trace if trace.size else None

    @property
    def used(self) -> RunUsage:
        """What it has used, where it is not at work."""
        if self._job.result_or_none is not None:
            return self._job.result_or_none.usage
        return used_so_far(self.trace) if self.trace is not None else RunUsage()

    async def begun(self) -> None:
        """Waits until it has a trace; raises what keeps it from having one."""
        async with anyio.create_task_group() as group:

            async def first(wait: Callable[[], Awaitable[Any]]) -> None:
                await wait()
                group.cancel_scope.cancel()

            group.start_soon(first, self.inner.begun.wait)
            group.start_soon(first, self._job.wait)
        if not self.inner.begun.is_set():
            self._job.result()

    async def stop(self) -> None:
        """Cancels it, with its books closed."""
        await self._job.stop()


class Besides:
    """All those of one run, by their ids."""

    def __init__(self, run: "LiveRun") -> None:
        self._run = run
        self._of: dict[str, Beside] = {}
        self._left: dict[str, RunUsage] = {}

    def begin(self, inner: InnerRun) -> "Beside":
        """Begins one, or takes it up."""
        if inner.run_id not in self._of:
            self._of[inner.run_id] = Beside(inner)
        return self._of[inner.run_id]

    def standing(self, label: str, read: Reads) -> ChildResult:
        """How one stands; raises EngineUsageError where the run has begun none of that label."""
        known = self._of.get(child_id(self._run.run_id, label))
        return known.standing(read) if known is not None else self._elsewhere(label)

    async def ended(self, label: str, call: Call, seconds: float | None, read: Reads) -> ChildResult:
        """Waits for the end of one, for so many seconds at most; gives how it then stands.

        What it waits for is asked where there is no limit: else it would be asked anew by each who waits a moment.
        """
        known = self._of.get(child_id(self._run.run_id, label))
        if known is None:
            return self._elsewhere(label)
        if seconds is not None:
            with anyio.move_on_after(seconds):
                await known.paused()
            return known.standing(read)
        assert known.inner.awaited_by is not None
        known.inner.awaited_by.append(call)
        self._run.waits.changed()
        try:
            await known.ended()
        finally:
            known.inner.awaited_by.remove(call)
            self._run.waits.changed()
        return known.standing(read)

    def _elsewhere(self, label: str) -> ChildResult:
        """How one stands that this run does not have at work: it was left, or is that of a run which this one forks."""
        near: Trace | None = self._run.writer.trace()
        while near is not None:
            try:
                trace = near.relative(child_id(near.run_id, label))
                return ChildResult.of_trace(trace, used_so_far(trace))
            except TraceNotFoundError:
                near = _forked(near)
        raise EngineUsageError(f"this run has begun no child {label!r}, and no run that it was forked from has")

    # with the run

    async def settle(self) -> None:
        """Waits for all of them: the run has come to its end by itself."""
        for each in list(self._of.values()):
            each.inner.awaited_by = None
        for child in self._run.children:
            child.waits.awaited_by = None
        self._run.waits.changed()
        await several([partial(_settled, each) for each in self._of.values()], max(1, len(self._of)))

    async def stop(self) -> None:
        """Cancels those that are at work, and waits until they have closed their books."""
        for each in list(self._of.values()):
            await each.stop()

    def usage(self) -> dict[str, Any]:
        """What each has used so far, for a commit to tell: it is part of what the run has."""
        at_work = {child.run_id: child.account.to_dict() for child in self._run.children}
        found = {run_id: at_work.get(run_id) or _counted(each.used) for run_id, each in self._of.items()}
        return found | {run_id: _counted(used) for run_id, used in self._left.items()}

    def take_up(self, module: AgentModule[Any], trace: Trace) -> None:
        """Takes up those that an earlier attempt has begun; where the module knows one no more, it is left and told."""
        for run_id in started_in(trace):
            try:
                child = trace.relative(run_id)
            except TraceNotFoundError:
                continue  # the call that begins it was cut off, and is made again
            if not len(child.records):
                continue
            link, task = child.header["parent"], Task.from_dict(child.header["task"])
            made = module.child_module(link["name"], task)
            if made is None:
                self._left[run_id] = used_so_far(child)
                data = {"run": run_id, "why": f"{type(module).__name__}.child_module gives no module for it"}
                self._run.write("event", self._run.step, {"name": "child_left", "data": data})
                continue
            record = _intent(trace, run_id)
            place = Place(record.step, record["phase"], record["digest"], record.get("n", 0), record["key"])
            self._run.begun_children.add(run_id)
            self.begin(InnerRun(self._run, place, made, task, link["name"], RuntimeBudget(**child.budget)))


def taken_up(run: "LiveRun", module: AgentModule[Any]) -> Besides:
    """Those that earlier attempts at a run have begun, at work again."""
    found = Besides(run)
    found.take_up(module, run.writer.trace())
    return found


def _forked(trace: Trace) -> Trace | None:
    """The run that one was forked from."""
    link = trace.header["parent"] or {}
    if "run" not in link or "call" in link or "candidate" in link:
        return None
    try:
        return trace.relative(link["run"])
    except TraceNotFoundError:
        return None


def _intent(trace: Trace, run_id: str) -> Record:
    """The intent that began a child."""
    return next(record for record in begun_children(trace, STARTED) if record["child"] == run_id)


def _counted(used: RunUsage) -> dict[str, Any]:
    """Usage as an account counts it."""
    return {name: value for name, value in used.to_dict().items() if name not in ("steps", "seconds")}


async def _settled(each: Beside) -> None:
    await each.ended()
