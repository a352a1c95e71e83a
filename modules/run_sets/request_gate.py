"""The gate before each request of a run.

A request first reserves money of the set, and then passes the limiter.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio import to_thread

from ...errors import StoreError
from ...traces import Record
from ..rate_limits import RateLimiter, RequestSlot
from .outage import through_outage
from .shared_budget import Place, Room, SharedBudget

LOOK_SECONDS = 0.1
"""Seconds until a request without enough money asks again."""


class RunGate:
    """The gate of one run.

    `on_empty` cancels the run when the money for its request has run out. Calls that pass no gate are booked when their
    step is committed. For a run that is resumed, `place` is its step in progress, and `booked` the cost of calls that
    passed a gate in that step before the run was killed.
    """

    def __init__(
        self,
        limiter: RateLimiter,
        shared_budget: SharedBudget | None,
        on_empty: Callable[[], None],
        prices: tuple[float, float] | None = None,
        place: Place | None = None,
        booked: float = 0.0,
    ) -> None:
        self._limiter = limiter
        self._shared_budget = shared_budget
        self._on_empty = on_empty
        self._prices = prices
        self._place = place
        self._booked = booked

    @asynccontextmanager
    async def request(self, tokens: int = 0) -> AsyncIterator[RequestSlot]:
        """Wait for money and for a turn; see `RateLimiter`."""
        if self._shared_budget is None:
            async with self._limiter.request(tokens) as slot:
                yield slot
            return
        held = await self._reserve(self._shared_budget)
        slot = RequestSlot(tokens)
        try:
            async with self._limiter.request(tokens) as slot:
                yield slot
        finally:  # a request that reports its cost and then raises is booked, too
            cost = self._cost(slot)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._shared_budget.settle, held, cost, self._place)
            self._booked += cost or 0.0  # not before: a step that is committed meanwhile does not have this cost

    def __call__(self, record: Record) -> None:
        """Observe the run's records, and book calls that passed no gate."""
        if record.kind == "header":
            self._place = Place(record["run_id"], 0, 0.0)
        usage = record.get("usage") if record.kind in ("commit", "end") else None
        if self._shared_budget is None or self._place is None or not usage:
            return
        cost = usage.get("cost") or 0.0
        more = cost - self._place.before - self._booked
        self._place, self._booked = Place(self._place.run, record.step + 1, cost), 0.0
        if record.kind == "end":
            self._shared_budget.ended(self._place.run)
        if more > 1e-9:
            self._shared_budget.add(more)
            with suppress(StoreError):  # the next call or step looks again
                if self._shared_budget.is_empty():
                    self._on_empty()

    async def _reserve(self, shared_budget: SharedBudget) -> float:
        while True:
            room, amount = await through_outage(shared_budget.reserve)
            if room is Room.YES:
                return amount
            if room is Room.NEVER:
                self._on_empty()
                await anyio.sleep_forever()
            await anyio.sleep(LOOK_SECONDS)

    def _cost(self, slot: RequestSlot) -> float | None:
        if slot.cost is None and self._prices is not None:
            return slot.tokens * max(self._prices) / 1e6
        return slot.cost
