"""Tasks of the event loop, outside the starter's task group and run."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

_running: set[asyncio.Task[None]] = set()


def spawn(fn: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `fn` as a task of asyncio's or trio's event loop.

    `fn` must not raise.
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
