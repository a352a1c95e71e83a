"""An event loop in a thread of its own, for client code that is heavy to load, blocks, or is tied to one loop.

Each `engine.run()` has an event loop of its own, and may be trio's; HTTP clients that outlive a loop break or leak.
Here they live as long as the process, and whatever they compute does not stall anybody's run.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")
P = TypeVar("P")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def _started() -> asyncio.AbstractEventLoop:
    """The loop; its thread is a daemon, so that it keeps no process alive."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="refold-aside", daemon=True).start()
        return _loop


def _forget() -> None:
    """A forked child has the loop, but not its thread."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Aside(Generic[P, T]):
    """Work that runs over there: take the `pieces()` that it `put`s, as they come, then its `result()`.

    Leaving the `async with` cancels what is still running.
    """

    def __init__(self, work: Callable[[Callable[[P], None]], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._pieces: deque[P] = deque()
        self._news = anyio.Event()
        self._wake = _waker(lambda: self._news.set())

    async def __aenter__(self) -> "Aside[P, T]":
        loop = _started()
        # In a context of its own: the caller's would say that trio is running, or that this is a run.
        self._future = Context().run(asyncio.run_coroutine_threadsafe, self._work(self._put), loop)
        self._future.add_done_callback(lambda _: self._wake())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._future.cancel()

    def _put(self, piece: P) -> None:
        self._pieces.append(piece)
        self._wake()

    async def pieces(self) -> AsyncGenerator[P, None]:
        """The pieces as they come, until the work is done."""
        while True:
            done = self._future.done()
            while self._pieces:
                yield self._pieces.popleft()
            if done:
                return
            await self._news.wait()
            self._news = anyio.Event()

    def result(self) -> T:
        """What the work gave, once there are no more pieces; raises what it raised."""
        return self._future.result(timeout=0)


async def aside(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine gives when it runs over there; cancelled when its caller is."""

    async def work(put: Callable[[None], None]) -> T:
        return await make()

    async with Aside(work) as running:
        async for _ in running.pieces():
            pass
        return running.result()


def _waker(wake: Callable[[], None]) -> Callable[[], None]:
    """`wake` as a function that any thread may call; it is called in the loop that runs here, while that is there."""
    soon: Callable[[Callable[[], None]], Any]
    try:
        soon = asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        from trio.lowlevel import current_trio_token

        soon = current_trio_token().run_sync_soon

    def call() -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            soon(wake)

    return call
