"""Schedules calls and tasks in the running event loop, on asyncio and on trio."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def soon() -> Callable[[Callable[[], Any]], Any]:
    """Return a function that schedules a call in the loop running now.

    The function may be called from any thread.
    """
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        from trio.lowlevel import current_trio_token

        return current_trio_token().run_sync_soon


def current_loop() -> Any:
    """Return an object that identifies the running event loop."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        from trio.lowlevel import current_trio_token

        return current_trio_token()


def later(seconds: float, call: Callable[[], Any]) -> Callable[[], Any]:
    """Schedule a call in the running event loop after `seconds`.

    Returns a function that cancels the call.
    """
    try:
        return asyncio.get_running_loop().call_later(seconds, call).cancel
    except RuntimeError:
        import trio

        scope = trio.CancelScope()

        async def wait() -> None:
            with scope:
                await trio.sleep(seconds)
                call()

        trio.lowlevel.spawn_system_task(wait)
        return scope.cancel


def spawn(work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Any]:
    """Start a task in the running event loop.

    Returns a function that cancels the task. `work` must raise nothing.
    """
    try:
        return asyncio.get_running_loop().create_task(work()).cancel
    except RuntimeError:
        import trio

        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await work()

        trio.lowlevel.spawn_system_task(run)
        return scope.cancel
