"""Background children: started by one call, inspected and awaited by later ones, while the run takes steps.

A run that ends normally waits for its background children, within its budget, and forwards their requests. A run that
fails or is cancelled cancels them. A resumed run resumes those that had not ended.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from ...errors import EngineUsageError, TraceError, TraceNotFoundError
from ...tasks import Task
from ...traces import Record, Trace
from ...traces.analysis.children import begun_children
from ..concurrency.tasks import Job, several
from ..effects.budget import RuntimeBudget
from ..effects.call import Call
from ..effects.journal import STARTED
from ..effects.usage import RunUsage
from ..module import AgentModule
from ..result import RunResult
from ..run.resume import started_in, used_so_far
from .child_result import ChildResult, Reads
from .child_run import InnerRun, Place, told_as_its_own
from .parent import child_id

if TYPE_CHECKING:
    from ..run.live_run import LiveRun


class Beside:
    """One background child."""

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
        """Wait until the child has ended, or waits for an answer."""
        await self._job.wait()

    async def ended(self) -> RunResult:
        """Wait for the end of the child, and forward its requests."""
        async with self._turn:
            while True:
                await self._job.wait()
                result = self._job.result()
                if not result.waiting:
                    return result
                answers = await self.inner.answers(result.waiting)
                self._job = self._begin(self.inner.go_on(answers))

    def standing(self, read: Reads) -> ChildResult:
        """Return the present status of the child; its result, if it has ended."""
        if self._job.over:
            return ChildResult.of(self._job.result(), read)
        trace = self.trace
        if trace is None:
            return ChildResult(self.inner.run_id, None)
        return ChildResult(self.inner.run_id, None, steps=trace.step_count, usage=used_so_far(trace))

    @property
    def trace(self) -> Trace | None:
        """The child's trace; None before it has one."""
        try:
            trace = self.inner.run.writer.trace().relative(self.inner.run_id)
        except TraceError:
            return None
        return trace if trace.size else None

    @property
    def used(self) -> RunUsage:
        """The usage of the child, from its result or its trace."""
        if self._job.result_or_none is not None:
            return self._job.result_or_none.usage
        return used_so_far(self.trace) if self.trace is not None else RunUsage()

    async def begun(self) -> None:
        """Wait until the child has a trace; raise the error that keeps it from starting."""
        async with anyio.create_task_group() as group:

            async def first(wait: Callable[[], Awaitable[Any]]) -> None:
                await wait()
                group.cancel_scope.cancel()

            group.start_soon(first, self.inner.begun.wait)
            group.start_soon(first, self._job.wait)
        if not self.inner.begun.is_set():
            self._job.result()

    async def stop(self) -> None:
        """Cancel the child, and wait until its end is written."""
        await self._job.stop()


class Besides:
    """The background children of one run, by id."""

    def __init__(self, run: "LiveRun") -> None:
        self._run = run
        self._of: dict[str, Beside] = {}
        self._left: dict[str, RunUsage] = {}

    def begin(self, inner: InnerRun) -> "Beside":
        """Start or resume a child; return the one at work if there is one."""
        if inner.run_id not in self._of:
            self._of[inner.run_id] = Beside(inner)
        return self._of[inner.run_id]

    def standing(self, label: str, read: Reads) -> ChildResult:
        """Return the status of a child; raises EngineUsageError if the run has started none with this label."""
        known = self._of.get(child_id(self._run.run_id, label))
        return known.standing(read) if known is not None else self._elsewhere(label)

    async def ended(self, label: str, call: Call, seconds: float | None, read: Reads) -> ChildResult:
        """Wait for the end of a child, for at most `seconds`; return its status then.

        Its requests are forwarded only if there is no limit: otherwise each short wait would ask them anew. Raises
        EngineUsageError if the run has started no child with this label.
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
        """Return the status of a child that is not at work here: an abandoned one, or one of a fork's source."""
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
        """Wait for all background children; called when the run ends normally."""
        for each in list(self._of.values()):
            each.inner.awaited_by = None
        for child in self._run.children:
            child.waits.awaited_by = None
        self._run.waits.changed()
        await several([partial(_settled, each) for each in self._of.values()], max(1, len(self._of)))

    async def stop(self) -> None:
        """Cancel the children at work, and wait until their ends are written."""
        for each in list(self._of.values()):
            await each.stop()

    def usage(self) -> dict[str, Any]:
        """Return the usage of each child so far, for the commit; the run's own usage includes it."""
        at_work = {child.run_id: child.account.to_dict() for child in self._run.children}
        found = {run_id: at_work.get(run_id) or _counted(each.used) for run_id, each in self._of.items()}
        return found | {run_id: _counted(used) for run_id, used in self._left.items()}

    def take_up(self, module: AgentModule[Any], trace: Trace) -> None:
        """Resume the children of earlier attempts.

        If the module's `child_module` returns None for a child, the child is abandoned, and an event says so.
        """
        for run_id in started_in(trace):
            try:
                child = trace.relative(run_id)
            except TraceNotFoundError:
                continue  # the starting call was cut off before the child had a trace, and is made again
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
    """Return the background children of a resumed run, at work again."""
    found = Besides(run)
    found.take_up(module, run.writer.trace())
    return found


def _forked(trace: Trace) -> Trace | None:
    """Return the trace of a fork's source; None if the run is no fork, or the trace is missing."""
    link = trace.header["parent"] or {}
    if "run" not in link or "call" in link or "candidate" in link:
        return None
    try:
        return trace.relative(link["run"])
    except TraceNotFoundError:
        return None


def _intent(trace: Trace, run_id: str) -> Record:
    """Return the intent that has started a child."""
    return next(record for record in begun_children(trace, STARTED) if record["child"] == run_id)


def _counted(used: RunUsage) -> dict[str, Any]:
    """Return the usage in the form in which an account counts it, without steps and seconds."""
    return {name: value for name, value in used.to_dict().items() if name not in ("steps", "seconds")}


async def _settled(each: Beside) -> None:
    await each.ended()
