"""Runs async work from sync code, so that Ctrl-C and SIGTERM end it as a cancellation does."""

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

R = TypeVar("R")


def run_with_signals(work: Callable[[], Awaitable[R]]) -> R:
    """`anyio.run(work)`; a SIGTERM that nobody else handles cancels it, and ends as SystemExit(143) with `.result`."""
    terminated = False

    async def main() -> R:
        nonlocal terminated
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            return await work()
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return await work()
        loop = asyncio.get_running_loop()
        this = asyncio.current_task()
        assert this is not None

        def on_term() -> None:
            nonlocal terminated
            terminated = True
            this.cancel("SIGTERM")

        loop.add_signal_handler(signal.SIGTERM, on_term)
        try:
            return await work()
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    cancelled: BaseException | None = None
    results: list[R] = []  # not what the task returns: asyncio.run makes the repr of that, twice, and states are long

    async def keep_result() -> None:
        nonlocal cancelled
        try:
            results.append(await main())
        except asyncio.CancelledError as raised:
            cancelled = raised
            raise

    try:
        anyio.run(keep_result)
        return results[0]
    except KeyboardInterrupt as raised:
        if getattr(raised, "result", None) is None:
            raised.result = getattr(cancelled, "result", None)  # type: ignore[attr-defined]
        raise
    except asyncio.CancelledError as raised:
        if not terminated:
            raise
        ended = SystemExit(128 + signal.SIGTERM)
        ended.result = getattr(raised, "result", None)  # type: ignore[attr-defined]
        raise ended from None
