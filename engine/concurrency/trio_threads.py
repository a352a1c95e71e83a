"""Sync calls on trio, in at most `MOST` of anyio's threads."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
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

_room: RunVar[anyio.CapacityLimiter] = RunVar("refold_room")
GRANTS: dict[int, Callable[[int], None]] = {}
"""For each thread at work on a job: a function that grants the thread's loop so many more jobs, or fewer."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=GRANTS.clear)


async def in_trio_thread(fn: Callable[..., Any], kwargs: dict[str, Any], context: Context) -> Any:
    """Run a job in one of anyio's threads.

    While no thread can be started, the job tries again every _AGAIN_SECONDS.
    """
    from trio import RunFinishedError
    from trio.lowlevel import current_trio_token

    lock, began, over, left = threading.Lock(), list[int](), False, False

    def work() -> tuple[Any]:  # in a tuple, since trio refuses a thread's result that is a coroutine
        nonlocal over
        with lock:
            if left:
                return (None,)
            began.append(ident := threading.get_ident())
        GRANTS[ident] = grant
        value, error = outcome_of(fn, kwargs, context)
        GRANTS.pop(ident, None)
        with lock:
            over = True
        if error is not None:
            raise error
        return (value,)

    in_loop = current_trio_token().run_sync_soon

    def grant(more: int) -> None:
        with suppress(RunFinishedError):
            in_loop(_grant, room, more)

    try:
        room = _room.get()
    except LookupError:
        room = anyio.CapacityLimiter(MOST)
        _room.set(room)
    place = object()
    await room.acquire_on_behalf_of(place)
    try:
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
                if room.borrowed_tokens <= 1:
                    raise NoThreadError(f"this process can start no thread for sync code: {error}") from error
            await anyio.sleep(_AGAIN_SECONDS)
    finally:
        room.release_on_behalf_of(place)


def _grant(room: anyio.CapacityLimiter, more: int) -> None:
    room.total_tokens += more
