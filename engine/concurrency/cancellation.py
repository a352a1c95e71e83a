"""Distinguishes a run's cancellation from one inside the run.

The latter is a cancellation inside a hook or a tool.

The engine cancels a run by a cancel scope around its work, which cancels again at every await. A stray cancellation is
any other: a tool cancels its own task or its siblings, or a library raises CancelledError. It is an error of the hook
or tool. It must not end the run in silence, and must not lose a result.
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
    """Return the number of pending cancellations of the running asyncio task.

    Returns 0 on trio, which does not count them.
    """
    task = own_task()
    return 0 if task is None else task.cancelling()


def own_task() -> "asyncio.Task[Any] | None":
    """Return the running asyncio task.

    Returns None on trio, and outside an event loop.
    """
    loop = events._get_running_loop()
    return None if loop is None else asyncio.current_task(loop)


async def withdraw(before: int = 0) -> None:
    """Withdraw later cancellations of the running asyncio task.

    They are those beyond the first `before`, raised or not.
    """
    if cancel_requests() <= before:
        return
    task = asyncio.current_task()
    assert task is not None
    while task.cancelling() > before:
        task.uncancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # before 3.13, asyncio raises a withdrawn cancellation at the next await all the same


def stray(what: str, error: BaseException | None = None) -> RuntimeError:
    """Return the error to raise in place of a stray cancellation.

    `what` names the hook or tool that was cancelled.
    """
    why = "" if error is None else message_of(error)
    why = f": {why}" if why else ""
    return RuntimeError(f"{what} was cancelled by something other than its run, or awaited what was cancelled{why}")
