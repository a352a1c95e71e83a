"""Work in a task and a context of its own: it goes on while others come and go, and is over once it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")


class Job(Generic[T]):
    """One piece of work, begun when it is made; `context` is where its context variables are looked up."""

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
        """Whether it has ended."""
        return self._over.is_set()

    @property
    def result_or_none(self) -> T | None:
        """What it gave; None where it gave nothing, or has not ended."""
        return self._result[0] if self._result else None

    async def wait(self) -> None:
        """Waits until it has ended, however."""
        await self._over.wait()

    async def run(self) -> T:
        """Its result, or what it raised; whoever is cancelled while he waits stops it."""
        try:
            await self._over.wait()
        except BaseException:
            await self.stop()
            raise
        return self.result()

    def cancel(self) -> None:
        """Cancels it, and does not wait."""
        self._cancel()

    async def stop(self) -> None:
        """Cancels it, and waits until it has cleaned up."""
        self._cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    def result(self) -> T:
        """What it gave, once it has ended; raises what it raised, and RuntimeError where it was cancelled."""
        if self._result:
            return self._result[0]
        if self._error is None or isinstance(self._error, anyio.get_cancelled_exc_class()):
            raise RuntimeError("the work was cancelled") from self._error
        raise self._error


def _begun(work: Callable[[], Awaitable[None]], over: Callable[[], Any], context: Context) -> Callable[[], Any]:
    """Starts a task in the event loop that runs here; gives what cancels it. `over` is called when it has ended."""
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
