"""Start a task that belongs to the event loop.

It does not belong to the starter's task group or run.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

_running: set[asyncio.Task[None]] = set()


def spawn(fn: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `fn`, which must not raise, beside the event loop's other tasks.

    The event loop is asyncio's or trio's.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio

        trio.lowlevel.spawn_system_task(fn, context=Context())
        return
    task = loop.create_task(fn(), context=Context())
    _running.add(task)
    task.add_done_callback(_running.discard)


def loop_token() -> object:
    """Return an object that identifies the current event loop."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token()
