"""The gate at which requests wait for their turn.

Requests pass one after the other, at the current pace.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import Protocol

import anyio

from ...engine import Usage
from ...traces.errors import UsageError
from .pace import Pace, Report

LOOK_SECONDS = 0.05
"""Seconds after which the first request in line reads the pace again, because the pace may have changed meanwhile."""
CATCH_UP_SECONDS = 0.05
"""The largest delay in seconds that the next turns catch up, so that imprecise sleeps do not slow down a fast pace."""
REPORT_SECONDS = 0.1
"""Seconds between reports of accepted requests to the pace; refused requests are reported at once."""
TOKEN_BURST_SECONDS = 5.0
"""Seconds of the token limit that may be used at once."""


class RequestSlot:
    """One request that has passed the gate.

    The request counts as accepted unless `refused` is called.
    """

    def __init__(self, tokens: int) -> None:
        self.reserved = tokens
        self.tokens = tokens
        self.cost: float | None = 0.0
        """The request's cost in US dollars; None if unknown."""
        self.is_reported = False
        """Whether the usage is known."""
        self.is_over = False
        """Whether a set has booked the request."""
        self.is_refused = False
        self.retry_after: float | None = None

    def used(self, tokens: int, cost: float | None = 0.0) -> None:
        """Set the usage of the request.

        `tokens` replace the estimate. `cost` is in US dollars, and None if it is unknown.
        """
        self.tokens = tokens
        self.cost = cost
        self.is_reported = True

    def refused(self, retry_after: float | None = None) -> None:
        """Report that the provider refused the request for its rate.

        `retry_after` is the number of seconds to wait before a repeat, if the provider sent one.
        """
        self.is_refused = True
        self.retry_after = retry_after


class Gate(Protocol):
    """A gate for requests, such as a `RateLimiter`."""

    def request(self, tokens: int = 0, at_most: Usage | None = None) -> AbstractAsyncContextManager[RequestSlot]:
        """Wait for a turn of a request that uses `at_most`, if known.

        Inside the context, make the request and report its outcome.
        """


class RateLimiter:
    """The gate of one process for requests that share a limit.

        async with limiter.request(tokens=800) as slot:
            answer = await client.post(...)
            if answer.status_code == 429:
                slot.refused(retry_after=2.0)

    A repeated request passes the gate again. One limiter serves one event loop.

    Args:
        requests_per_minute: a known limit, kept from the start; refusals lower the pace further.
        tokens_per_minute: a limit of tokens; each request reserves its estimate, and settles its real usage.
        clock: a function that returns seconds that never decrease.
        sleep: a function that waits for some seconds.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        for name, value in (("requests_per_minute", requests_per_minute), ("tokens_per_minute", tokens_per_minute)):
            if value is not None and not 0 < value < math.inf:
                raise UsageError(f"{name} must be a number above 0, or None, got {value!r}")
        self._most = None if requests_per_minute is None else requests_per_minute / 60
        self._tokens = None if tokens_per_minute is None else tokens_per_minute / 60
        self._clock = clock
        self._sleep = sleep
        now = clock()
        self.pace = Pace.start(now)
        self.share = 1.0
        """This process's share of the known limits; the learned pace is always its own."""
        self.accepted = 0
        self.refused = 0
        self.waiting = 0
        self._turn = -math.inf
        self._room = (self._tokens or 0.0) * TOKEN_BURST_SECONDS
        self._filled = now
        self._reported = now
        self._unreported = 0
        self._was_limited = False
        self._lock = anyio.Lock()

    @property
    def rate(self) -> float:
        """The requests a second that this process may make now."""
        learned = self.pace.rate if self._most is None or self.pace.cut_at is not None else math.inf
        return min(learned, self._most * self.share if self._most is not None else math.inf)

    @asynccontextmanager
    async def request(self, tokens: int = 0, at_most: Usage | None = None) -> AsyncIterator[RequestSlot]:
        """Wait for a turn, then report the outcome of the request.

        The limiter ignores `at_most`, which is for a set's cost limit.
        """
        self.waiting += 1
        try:
            async with self._lock:
                await self._wait(tokens)
        finally:
            self.waiting -= 1
        slot = RequestSlot(tokens)
        try:
            yield slot
        finally:
            self._room += slot.reserved - slot.tokens
            if slot.is_refused:
                self.refused += 1
                self._report(refused=1, retry_after=slot.retry_after)
            else:
                self.accepted += 1
                self._unreported += 1

    async def _wait(self, tokens: int) -> None:
        while True:
            now = self._clock()
            if now - self._reported >= REPORT_SECONDS:
                self._report()
            late = self._late(now, tokens)
            if late <= 0:
                break
            self._was_limited = True
            await self._sleep(min(late, LOOK_SECONDS))
        self._turn = max(self._turn + 1 / self.rate, now - CATCH_UP_SECONDS)
        self._room -= tokens

    def _late(self, now: float, tokens: int) -> float:
        """Return the seconds until a request may pass."""
        waits = [self._turn + 1 / self.rate - now, self.pace.paused_until - now]
        if self._tokens is not None:
            most = self._tokens * TOKEN_BURST_SECONDS * self.share
            self._room = min(most, self._room + (now - self._filled) * self._tokens * self.share)
            self._filled = now
            waits.append((min(tokens, most) - self._room) / (self._tokens * self.share))
        return max(waits)

    def _report(self, refused: int = 0, retry_after: float | None = None) -> None:
        now = self._clock()
        self.pace = self.pace.after(Report(now, self._unreported, refused, self._was_limited, retry_after))
        self._reported, self._unreported, self._was_limited = now, 0, False


_current: ContextVar[Gate | None] = ContextVar("refold_rate_limiter", default=None)


def current_limiter() -> Gate | None:
    """Return the current limiter, or None."""
    return _current.get()


@contextmanager
def use_limiter(limiter: Gate | None) -> Iterator[None]:
    """Make this limiter the current one inside the block."""
    token = _current.set(limiter)
    try:
        yield
    finally:
        _current.reset(token)


def request_slot(tokens: int = 0, *, at_most: Usage | None = None) -> AbstractAsyncContextManager[RequestSlot]:
    """Return a context that waits for one request's turn.

    The request waits at the current limiter; without a limiter, it does not wait. `tokens` estimates the request's
    usage. `at_most` is the largest possible usage; in a set with a cost limit, requests without it run one at a time.
    Use it in your own effects that send requests to a provider:

        async with request_slot(tokens=500, at_most=Usage(cost=0.02)) as slot: ...

    A request that raises before `slot.used` or `slot.refused` was called may have been billed. A set's cost limit
    counts it with its `at_most`.
    """
    limiter = _current.get()
    return nullcontext(RequestSlot(tokens)) if limiter is None else limiter.request(tokens, at_most)
