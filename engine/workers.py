"""Runs sync hooks, tools and effects in daemon threads that a deadline can leave behind."""

import asyncio
import os
import threading
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any

import anyio.to_thread

try:
    from sniffio import current_async_library_cvar as _loop_name
except ImportError:  # then anyio looks for a running loop instead
    _loop_name = None  # type: ignore[assignment]

RUNNING: dict[int, Context] = {}
"""The context of the job that each worker thread is doing, by the thread's ident."""


_IDLE_SECONDS = 20.0
"""How long a worker waits for its next job before it ends."""


class _Job:
    """One call handed to a worker, and the future that waits for it."""

    __slots__ = ("context", "fn", "future", "kwargs", "loop")

    def __init__(
        self, fn: Callable[..., Any], kwargs: dict[str, Any], context: Context, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.fn = fn
        self.kwargs = kwargs
        self.context = context
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    def deliver(self, value: Any, error: BaseException | None) -> None:
        if self.future.cancelled():
            return
        if error is None:
            self.future.set_result(value)
        elif isinstance(error, StopIteration):
            self.future.set_exception(RuntimeError("StopIteration left a sync function"))
        else:
            self.future.set_exception(error)


class _Worker(threading.Thread):
    """A daemon thread that does one job after another and goes back to the idle ones in between."""

    def __init__(self, idle: "deque[_Worker]") -> None:
        super().__init__(daemon=True, name="refold worker")
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self._idle = idle

    def run(self) -> None:
        ident = threading.get_ident()
        while True:
            try:
                job = self.jobs.get(timeout=_IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.remove(self)
                except ValueError:  # somebody has just taken this worker: its job is on the way
                    continue
                return
            value, error = None, None
            RUNNING[ident] = job.context
            try:
                value = job.context.run(job.fn, **job.kwargs)
            except BaseException as raised:  # noqa: BLE001 - it is raised again where the job is awaited
                error = raised
            RUNNING.pop(ident, None)
            self._idle.append(self)
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                job.loop.call_soon_threadsafe(job.deliver, value, error)
            del job, value, error


_idle: deque[_Worker] = deque()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a forked child has none of the threads


async def in_thread(fn: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Runs `fn(**kwargs)` in a worker thread, in a copy of the context; when cancelled, leaves the thread to itself."""
    if events._get_running_loop() is None:
        context = _context()
        (value,) = await anyio.to_thread.run_sync(  # in a tuple, since trio refuses a bare coroutine
            lambda: (_tracked(context, fn, kwargs),), abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
        )
        return value
    job = _Job(fn, kwargs, _context(), asyncio.get_running_loop())
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker(_idle)
        worker.start()
    worker.jobs.put(job)
    return await job.future


def _context() -> Context:
    """A copy of the context for a thread: no event loop runs there, so that one can be started."""
    context = copy_context()
    if _loop_name is not None:
        context.run(_loop_name.set, None)
    return context


def _tracked(context: Context, fn: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    ident = threading.get_ident()
    RUNNING[ident] = context
    try:
        return context.run(fn, **kwargs)
    finally:
        RUNNING.pop(ident, None)
