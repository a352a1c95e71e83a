"""Outcomes are given in the order in which they were recorded; who asks early waits, and is woken when it is time."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import anyio

from ..concurrency.scheduler import soon
from .call import LAST, Recorded

QUIET_SECONDS = 5.0
"""How long nothing may happen while a call waits for its turn. Only code that no longer asks for what was recorded lets
that pass: what comes before then is not waited for any more."""


class Ended(Protocol):
    """A recorded call that has ended; `over` says that its outcome was given, or that nobody will ask for it."""

    recorded: Recorded
    over: bool


class _After:
    """Stands for what comes after all that is recorded."""

    def __init__(self) -> None:
        self.recorded = Recorded(-id(self), None, order=LAST + 1)
        self.over = False


class RecordedOrder:
    """The calls of one hook, or of one call, in the order of their outcomes, and those who wait for their turn."""

    def __init__(self) -> None:
        self._calls: list[Ended] = []
        self._at = 0
        self._sorted = True
        self._waiting: dict[int, Callable[[], Any]] = {}
        """How to wake who waits for the turn of a call, by the call's intent."""
        self._lock = threading.Lock()
        self._moves = 0
        self._loose = False

    def add(self, call: Ended) -> None:
        """Takes a call in; before any is asked for."""
        self._calls.append(call)
        self._sorted = False

    def moved(self) -> None:
        """Goes on past what is over, and wakes who is next."""
        with self._lock:
            self._moves += 1
            head = self._head()
            if head is None:
                wakes, self._waiting = list(self._waiting.values()), {}
            else:
                wakes = [self._waiting.pop(head.recorded.intent)] if head.recorded.intent in self._waiting else []
        for wake in wakes:
            wake()

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for."""
        with self._lock:
            return self._loose or self._head() is None

    async def all(self) -> None:
        """Waits until all of them are over."""
        await self.turn(_After())

    def all_in_thread(self) -> None:
        """`all`, for a thread."""
        self.turn_in_thread(_After())

    async def turn(self, call: Ended) -> None:
        """Waits until all that ended before this call is over."""
        while (moves := self._moves_until_ready(call, None)) is not None:
            event = anyio.Event()
            if self._moves_until_ready(call, _waker(event)) is None:
                return
            with anyio.move_on_after(QUIET_SECONDS):
                await event.wait()
            self._waited(call, moves)

    def turn_in_thread(self, call: Ended) -> None:
        """`turn`, for a thread."""
        while True:
            event = threading.Event()
            moves = self._moves_until_ready(call, event.set)
            if moves is None:
                return
            event.wait(QUIET_SECONDS)
            self._waited(call, moves)

    async def cut_off(self) -> bool:
        """Waits to be cancelled; False where nothing comes of it."""
        moves = -1
        while moves != self._moves:
            moves = self._moves
            with anyio.move_on_after(QUIET_SECONDS):
                await anyio.sleep_forever()
        return False

    def _moves_until_ready(self, call: Ended, wake: Callable[[], Any] | None) -> int | None:
        """None when it is the call's turn; else how often something moved so far, and `wake` is called in time."""
        with self._lock:
            head = self._head()
            if self._loose or head is None or call.recorded.order <= head.recorded.order:
                return None
            if wake is not None:
                self._waiting[call.recorded.intent] = wake
            return self._moves

    def _waited(self, call: Ended, moves: int) -> None:
        """After a wait: where nothing has moved all the time, nobody waits here any more."""
        wakes: list[Callable[[], Any]] = []
        with self._lock:
            self._waiting.pop(call.recorded.intent, None)
            if self._moves == moves:
                self._loose = True
                wakes, self._waiting = list(self._waiting.values()), {}
        for wake in wakes:
            wake()

    def _head(self) -> Ended | None:
        if not self._sorted:
            self._calls.sort(key=_order)
            self._sorted = True
        while self._at < len(self._calls) and self._calls[self._at].over:
            self._at += 1
        return self._calls[self._at] if self._at < len(self._calls) else None


def _order(call: Ended) -> int:
    return call.recorded.order


def _waker(event: anyio.Event) -> Callable[[], Any]:
    """Sets an event of the running loop, from any thread."""
    schedule, here = soon(), threading.get_ident()

    def wake() -> None:
        if threading.get_ident() == here:
            event.set()
        else:
            with suppress(RuntimeError):  # the loop has ended meanwhile, and with it who waits
                schedule(event.set)

    return wake
