"""Work in a separate task and context, independent of the task that starts it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")


class Job(Generic[T]):
    """One piece of work, which starts when the Job is made.

    The work sees the context variables of `context`. Several tasks may wait for it, and it continues if they end.
    """

    def __init__(self, work: Callable[[], Awaitable[T]], context: Context) -> None:
        self._work = work
        self._over = anyio.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._cancel = _begun(self._do, self._over.set, context)

    async def _do(self) -> None:
        try:
            self._result.append(await self._work())
        except BaseException as error:
            self._error = error
            if isinstance(error, anyio.get_cancelled_exc_class()):
                raise

    @property
    def over(self) -> bool:
        """Return whether the work has ended."""
        return self._over.is_set()

    @property
    def result_or_none(self) -> T | None:
        """Return the result of the work; None if it has not ended, or raised."""
        return self._result[0] if self._result else None

    async def wait(self) -> None:
        """Wait until the work has ended, with a result or an error."""
        await self._over.wait()

    async def run(self) -> T:
        """Wait for the work, and return its result or raise its error.

        If the waiter is cancelled, cancel the work.
        """
        try:
            await self._over.wait()
        except BaseException:
            await self.stop()
            raise
        return self.result()

    def cancel(self) -> None:
        """Cancel the work, and return at once."""
        self._cancel()

    async def stop(self) -> None:
        """Cancel the work, and wait until it has cleaned up."""
        self._cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    def result(self) -> T:
        """Return the result of work that has ended.

        Raises the error of the work, or RuntimeError if the work was cancelled.
        """
        if self._result:
            return self._result[0]
        if self._error is None or isinstance(self._error, anyio.get_cancelled_exc_class()):
            raise RuntimeError("the work was cancelled") from self._error
        raise self._error


def _begun(work: Callable[[], Awaitable[None]], over: Callable[[], Any], context: Context) -> Callable[[], Any]:
    """Start a task in the running event loop, and return a function that cancels it.

    The task calls `over` when it has ended.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _begun_on_trio(work, over, context)
    task = loop.create_task(_as_coroutine(work), context=context)
    task.add_done_callback(lambda _: over())
    return task.cancel


async def _as_coroutine(work: Callable[[], Awaitable[None]]) -> None:
    await work()


def _begun_on_trio(work: Callable[[], Awaitable[None]], over: Callable[[], Any], context: Context) -> Callable[[], Any]:
    import trio

    scope = trio.CancelScope()

    async def run() -> None:
        try:
            with scope:
                await work()
        finally:
            over()

    trio.lowlevel.spawn_system_task(run, context=context)
    return scope.cancel
