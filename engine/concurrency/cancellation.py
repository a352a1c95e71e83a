"""Who is cancelled: the run, or only the task that a hook or a tool happens to run in.

A run is cancelled by a cancel scope around its work, which asks again at each await. Whatever else cancels a task (a
tool that cancels its own task or its siblings, a library that raises CancelledError) is that hook's or tool's own
doing: it never ends the run in silence, and never takes a result with it.
"""

import asyncio
import math
from asyncio import events
from contextlib import suppress
from typing import Any

import anyio


def is_cancelled() -> bool:
    """Return whether a cancel scope around the running task is cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def cancel_requests() -> int:
    """Return how many cancellations of the running asyncio task nobody has taken back; 0 on trio, which has none."""
    task = own_task()
    return 0 if task is None else task.cancelling()


def own_task() -> "asyncio.Task[Any] | None":
    """Return the running asyncio task; None on trio, and outside of a loop."""
    loop = events._get_running_loop()
    return None if loop is None else asyncio.current_task(loop)


async def withdraw(before: int = 0) -> None:
    """Take back the cancellations of the running task beyond the first `before`, those not yet raised included."""
    if cancel_requests() <= before:
        return
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling() > before:
        task.uncancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # until 3.13, asyncio raises a pending one at the next await even so


def stray(what: str, error: BaseException | None = None) -> RuntimeError:
    """Return the error to tell in place of a cancellation that is not the run's."""
    why = f": {error}" if error is not None and str(error) else ""
    return RuntimeError(f"{what} was cancelled by something other than its run, or awaited what was cancelled{why}")
