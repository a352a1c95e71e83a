"""Distinguishes a run's cancellation from one inside the run.

The engine cancels a run by a cancel scope around its work, which cancels again at every await. Any other cancellation
is stray: a tool cancels its own task or its siblings, or a library raises CancelledError. A stray cancellation is an
error of the hook or tool. It must not end the run silently, and must not lose a result.
"""

import asyncio
import math
from asyncio import events
from contextlib import suppress
from typing import Any

import anyio

from ...printable import message_of


def is_cancelled() -> bool:
    """Return whether a cancel scope around the running task is cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def cancel_requests() -> int:
    """Return the running asyncio task's pending cancellations; 0 on trio."""
    task = own_task()
    return 0 if task is None else task.cancelling()


def own_task() -> "asyncio.Task[Any] | None":
    """Return the running asyncio task; None on trio and outside loops."""
    loop = events._get_running_loop()
    return None if loop is None else asyncio.current_task(loop)


async def withdraw(before: int = 0) -> None:
    """Withdraw the running asyncio task's cancellations after the first `before`."""
    if cancel_requests() <= before:
        return
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling() > before:
        task.uncancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # before 3.13, asyncio raises a withdrawn cancellation at the next await nevertheless


def stray(what: str, error: BaseException | None = None) -> RuntimeError:
    """Return the error for a stray cancellation of a hook or tool."""
    why = "" if error is None else message_of(error)
    why = f": {why}" if why else ""
    return RuntimeError(f"{what} was cancelled by something other than its run, or awaited a cancelled task{why}")
