"""Deadlines and cancellations that come once something has happened, however long that takes on a busy machine."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType, SimpleNamespace

import anyio
import pytest


class StandingClock:
    """A clock for an engine's `clock=` that stands still until `ready()` holds, and is then a second later.

    With a budget of `SOON` seconds, the deadline passes once `ready()` holds, and not before.
    """

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._elapsed = 0.0

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return 1_700_000_000.0 + self.monotonic()

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        if not self._elapsed and self._ready():
            self._elapsed = 1.0
        return self._elapsed


SOON = 0.05
"""The seconds after which the engine looks at its clock again."""


@asynccontextmanager
async def cancelled_when(ready: Callable[[], object]) -> AsyncIterator[anyio.CancelScope]:
    """A scope that is cancelled once `ready()` holds."""
    watching = anyio.CancelScope()

    async def watch() -> None:
        with watching:
            while not ready():
                await anyio.sleep(0.001)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        yield group.cancel_scope
        watching.cancel()


@contextmanager
def clock_stands_until(ready: Callable[[], object], module: ModuleType) -> Iterator[None]:
    """Within the block, `time.monotonic` of a module stands still until `ready()` holds, and so do its deadlines."""
    began = time.monotonic()
    standing = {"monotonic": lambda: time.monotonic() if ready() else began}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", SimpleNamespace(**{**vars(time), **standing}))
        yield


@contextmanager
def timers_stand_until(ready: Callable[[], object]) -> Iterator[None]:
    """Within the block, the clock of asyncio's loops stands still until `ready()` holds, and so do their timeouts.

    A timeout that is to cut something off then does so once that has begun, and cuts off nothing that is to end.
    """
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.BaseEventLoop, "time", lambda self: time.monotonic() if ready() else began)
        yield
