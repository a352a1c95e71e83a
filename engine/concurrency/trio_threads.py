"""Sync calls on trio, in at most `MOST` of anyio's threads."""

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from ...errors import NoThreadError
from ...tasks.processes.apart import kill_work_of
from .thread_calls import MOST, outcome_of

_AGAIN_SECONDS = 0.01
"""The seconds after which a job on trio tries again to start a thread."""

_room: RunVar[anyio.Semaphore] = RunVar("refold_room")


async def in_trio_thread(fn: Callable[..., Any], kwargs: dict[str, Any], context: Context) -> Any:
    """Run a job in one of anyio's threads.

    While no thread can be started, the job tries again every _AGAIN_SECONDS.
    """
    lock, began, over, left = threading.Lock(), list[int](), False, False

    def work() -> tuple[Any]:  # in a tuple, since trio refuses a thread's result that is a coroutine
        nonlocal over
        with lock:
            if left:
                return (None,)
            began.append(threading.get_ident())
        value, error = outcome_of(fn, kwargs, context)
        with lock:
            over = True
        if error is not None:
            raise error
        return (value,)

    try:
        room = _room.get()
    except LookupError:
        room = anyio.Semaphore(MOST)
        _room.set(room)
    async with room:
        while True:
            try:
                limiter = anyio.CapacityLimiter(1)
                return (await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter))[0]
            except anyio.get_cancelled_exc_class():
                with lock:
                    left = True
                    if began and not over:
                        kill_work_of(began[0])
                raise
            except RuntimeError as error:
                if began:
                    raise
                if room.value == MOST - 1:
                    raise NoThreadError(f"this process can start no thread for sync code: {error}") from error
            await anyio.sleep(_AGAIN_SECONDS)
