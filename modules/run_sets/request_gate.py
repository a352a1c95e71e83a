"""The gate before each request of a run.

A request first reserves money of the set, and then passes the limiter.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial

import anyio
from anyio import to_thread

from ...engine import Usage
from ...errors import StoreError
from ...traces import Record
from ..rate_limits import RateLimiter, RequestSlot
from .outage import through_outage
from .shared_budget import Held, Place, Room, SharedBudget

LOOK_SECONDS = 0.1
"""Seconds until a request without enough money asks again."""


_outer: ContextVar[tuple["RunGate", RequestSlot] | None] = ContextVar("refold_outer_request", default=None)
"""The request inside which this code runs, and its gate."""


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
    async def request(self, tokens: int = 0, at_most: Usage | None = None) -> AsyncIterator[RequestSlot]:
        """Hold money, wait for a turn, and book the cost; see `RateLimiter`.

        A request inside another one holds nothing, because it would wait forever for money that the outer one holds.
        """
        budget = self._shared_budget
        if budget is None:
            async with self._limiter.request(tokens, at_most) as slot:
                yield slot
            return
        outer, bound = _outer.get(), self._priced(at_most)
        is_inside = outer is not None and outer[0] is self and not outer[1].is_over
        if not is_inside:
            await self._reserve(budget, bound)
        slot: RequestSlot | None = None
        is_lost = False
        try:
            async with self._limiter.request(tokens, at_most) as slot:
                _outer.set((self, slot))
                yield slot
        except BaseException:
            is_lost = slot is not None and not slot.is_reported and not slot.is_refused
            raise
        finally:
            await self._settle(budget, () if is_inside else (bound,), bound, slot, is_lost=is_lost)

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

    async def _reserve(self, budget: SharedBudget, bound: float | None) -> None:
        async with budget.queue:
            while (room := await through_outage(partial(budget.reserve, bound))) is Room.LATER:
                await anyio.sleep(LOOK_SECONDS)
        if room is Room.NEVER:
            self._on_empty()
            await anyio.sleep_forever()

    async def _settle(
        self,
        budget: SharedBudget,
        held: Held,
        bound: float | None,
        slot: RequestSlot | None,
        *,
        is_lost: bool,
    ) -> None:
        """Book the request; its slot is None if it was not sent."""
        cost: float | None = 0.0
        if slot is not None:
            slot.is_over, cost = True, slot.cost
            if cost is None and self._prices is not None:
                cost = slot.tokens * max(self._prices) / 1e6
        is_lost = is_lost or (cost is None and bound is not None)
        with anyio.CancelScope(shield=True):
            if is_lost:
                await to_thread.run_sync(budget.lose, held, bound)
            else:
                await to_thread.run_sync(budget.settle, held, cost, self._place)
                self._booked += cost or 0.0  # not before: a step that is committed meanwhile does not have this cost

    def _priced(self, usage: Usage | None) -> float | None:
        """Return the cost of a usage, by the assumed price if needed."""
        if usage is None or usage.cost is not None or self._prices is None:
            return None if usage is None else usage.cost
        return (usage.tokens_in * self._prices[0] + usage.tokens_out * self._prices[1]) / 1e6
