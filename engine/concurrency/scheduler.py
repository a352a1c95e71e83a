"""Calls a function soon in the running event loop, from any thread, on asyncio as on trio."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def soon() -> Callable[[Callable[[], Any]], Any]:
    """Gives what schedules a call in the event loop that runs now; to be used from any thread."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        from trio.lowlevel import current_trio_token

        return current_trio_token().run_sync_soon


def current_loop() -> Any:
    """What tells the event loop that runs here from others."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        from trio.lowlevel import current_trio_token

        return current_trio_token()


def later(seconds: float, call: Callable[[], Any]) -> Callable[[], Any]:
    """Calls a function in the running event loop after `seconds`; gives what takes that back."""
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
    """Starts a task of its own in the running event loop; gives what cancels it. It must raise nothing."""
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
