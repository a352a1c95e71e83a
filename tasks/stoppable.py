"""Blocking work in a thread that is stopped, and waited for, when the task that awaits it is cancelled."""

import math
import threading
from asyncio import CancelledError
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")
_LOOK_SECONDS = 0.005


async def run_stoppable(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """What `work` gives, run in a worker thread; it raises what `work` raises.

    When cancelled, in whatever way and at whatever moment, it calls `stop` and waits until `work` is over, if it has
    begun; the cancellation is raised then, whatever `work` and `stop` have done. `work` never runs after that. `stop`
    is called from the event loop and does not wait.
    """
    job = _Job(work)
    try:
        await anyio.to_thread.run_sync(job.run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(math.inf))
    except anyio.get_cancelled_exc_class() as cancelled:
        last = await _stopped(job, stop)
        raise (cancelled if last is None else last) from None
    finally:
        if not job.withdrawn() and not job.over.is_set():  # this coroutine is thrown away: nothing can be awaited
            stop()
    return job.outcome()


async def _stopped(job: "_Job[T]", stop: Callable[[], None]) -> CancelledError | None:
    """Ends the work; gives the last cancellation that came meanwhile, of those that pierce a shield (asyncio's own)."""
    came: CancelledError | None = None
    if job.withdrawn():
        return came
    try:
        stop()
    finally:
        with anyio.CancelScope(shield=True):
            while not job.over.is_set():
                try:
                    await anyio.sleep(_LOOK_SECONDS)
                except CancelledError as error:
                    came = error
    return came


class _Job(Generic[T]):
    """Work that is begun once: by the thread, or never."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._free = threading.Lock()
        self._value: list[T] = []
        self._error: BaseException | None = None
        self.over = threading.Event()

    def withdrawn(self) -> bool:
        """Withdraw the work; whether it had not been begun."""
        return self._free.acquire(blocking=False)

    def run(self) -> None:
        """Does the work, unless it was withdrawn."""
        if not self._free.acquire(blocking=False):
            return
        try:
            self._value.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised by `outcome`, where it is awaited
            self._error = error
        finally:
            self.over.set()

    def outcome(self) -> T:
        """What the work gave, or raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value[0]
