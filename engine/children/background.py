"""A background child, which outlives the call that starts it."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from ...errors import TraceError
from ...traces import Trace
from ..concurrency.tasks import Job
from ..effects.call import Call
from ..effects.usage import RunUsage
from ..result import RunResult
from ..run.start.usage import used_so_far
from .called_run import CalledRun, as_child_error
from .child_result import ChildResult, Reads


class BackgroundChild:
    """One background child, at work in a task of its own."""

    def __init__(self, child: CalledRun) -> None:
        self.child = child
        self._turn = anyio.Lock()
        self._job = self._started(child.advance())

    def _started(self, work: Any) -> Job[RunResult]:
        async def attempt() -> RunResult:
            with as_child_error(self.child.run_id):
                result: RunResult = await work
                return result

        return Job(attempt, self.child.run.context.copy())

    async def started(self) -> None:
        """Wait until the child has a trace, or raise its error."""
        async with anyio.create_task_group() as group:

            async def first(wait: Callable[[], Awaitable[Any]]) -> None:
                await wait()
                group.cancel_scope.cancel()

            group.start_soon(first, self.child.started.wait)
            group.start_soon(first, self._job.wait)
        if not self.child.started.is_set():
            self._job.result()

    async def wait(self, call: Call, seconds: float | None) -> None:
        """Let a call of the parent wait for the child's end.

        With `seconds`, the wait takes no longer, and the child's requests are not forwarded to the parent: each of
        several short waits would ask them anew.
        """
        if seconds is None:
            with self.child.awaiting(call):
                await self.ended()
        else:
            with anyio.move_on_after(seconds):
                await self._job.wait()

    async def ended(self) -> None:
        """Wait for the end of the child, and forward its requests."""
        async with self._turn:
            while True:
                await self._job.wait()
                result = self._job.result()
                if not result.waiting:
                    return
                answers = await self.child.answers(result.waiting)
                self._job = self._started(self.child.go_on(answers))

    def status(self, read: Reads) -> ChildResult:
        """Return the present status of the child, or its result."""
        if self._job.over:
            return ChildResult.of(self._job.result(), read)
        trace = self._trace
        if trace is None:
            return ChildResult(self.child.run_id, None)
        return ChildResult(self.child.run_id, None, steps=trace.step_count, usage=used_so_far(trace))

    @property
    def _trace(self) -> Trace | None:
        """The child's trace; None before it has one."""
        try:
            trace = self.child.run.writer.trace().relative(self.child.run_id)
        except TraceError:
            return None
        return trace if trace.size else None

    @property
    def used(self) -> RunUsage:
        """The child's usage, from its account, result or trace."""
        if self._job.result_or_none is not None:
            return self._job.result_or_none.usage
        trace = self._trace
        return used_so_far(trace) if trace is not None else RunUsage()

    async def stop(self) -> None:
        """Cancel the child, and wait until its end is written."""
        await self._job.stop()
