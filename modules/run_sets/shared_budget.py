"""The money of a set: a cost limit for all its processes.

Each running call holds an amount: the cost of the dearest call so far. The first call holds all that is left, so it
runs alone. A call for which too little is left waits until others end. If no call is running, the money has run out.

The store may fail, and then nobody knows whether a write was made. So each write has all that its worker holds, and not
a difference, and all its bookings since the last certain write. Bookings are numbered, so that none counts twice.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from ...errors import StoreError
from ...traces.stores import TaskTable

log = logging.getLogger("refold")
NAME = "money"
"""The name of the document that the processes share."""
STALE_SECONDS = 60.0
"""The seconds after which money held by a silent process counts as spent, because its calls may have been made.

A live process renews its money more often, however long its calls take.
"""


class Room(Enum):
    """The answer to a call that needs money."""

    YES = "yes"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Money:
    """The money that a set has spent, and that calls hold.

    `held` has US dollars, calls and the time of the last change by worker. `unfinished` has, by run, the step in
    progress, the run's cost in its trace before that step, and the cost of calls booked since. `bookings` has the
    number of each worker's last booking.
    """

    spent: float = 0.0
    dearest: float = 0.0
    unpriced: int = 0
    held: Mapping[str, tuple[float, int, float]] = field(default_factory=dict)
    unfinished: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    bookings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: dict[str, Any] | None) -> "Money":
        """Return the money in the JSON form."""
        found = document or {}
        held = {owner: (float(a), int(n), float(at)) for owner, (a, n, at) in found.get("held", {}).items()}
        unfinished = {run: (int(k), float(a), float(b)) for run, (k, a, b) in found.get("unfinished", {}).items()}
        bookings = {owner: int(number) for owner, number in found.get("bookings", {}).items()}
        spent, dearest, unpriced = found.get("spent", 0.0), found.get("dearest", 0.0), found.get("unpriced", 0)
        return cls(spent, dearest, unpriced, held, unfinished, bookings)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        held = {owner: list(each) for owner, each in self.held.items()}
        found = {"spent": self.spent, "dearest": self.dearest, "unpriced": self.unpriced, "held": held}
        unfinished = {run: list(each) for run, each in self.unfinished.items()}
        return {**found, "unfinished": unfinished, "bookings": dict(self.bookings)}

    def without_stale(self, now: float) -> "Money":
        """Return the money with the amounts of silent processes counted as spent."""
        stale = {owner for owner, (_, _, at) in self.held.items() if now - at > STALE_SECONDS}
        lost = sum(self.held[owner][0] for owner in stale)
        kept = {owner: each for owner, each in self.held.items() if owner not in stale}
        return replace(self, spent=self.spent + lost, held=kept)

    def holding(self, owner: str, amount: float, calls: int, now: float) -> "Money":
        """Return the money with all that a worker's calls hold now."""
        others = {other: each for other, each in self.held.items() if other != owner}
        return replace(self, held={**others, owner: (amount, calls, now)} if calls else others)

    def booked_at(self, place: "Place", cost: float) -> "Money":
        """Return the money after a call in a step was booked."""
        step, before, booked = self.unfinished.get(place.run, (place.step, place.before, 0.0))
        earlier = booked if (step, before) == (place.step, place.before) else 0.0
        return replace(self, unfinished={**self.unfinished, place.run: (place.step, place.before, earlier + cost)})

    def booking(self, owner: str, booking: "Booking") -> "Money":
        """Return the money after a worker's booking, which counts once."""
        if booking.number <= self.bookings.get(owner, 0):
            return self
        after = self if booking.place is None else self.booked_at(booking.place, booking.cost)
        return replace(
            after,
            spent=self.spent + booking.cost,
            dearest=max(self.dearest, booking.cost) if booking.is_call else self.dearest,
            unpriced=self.unpriced + booking.is_unpriced,
            bookings={**self.bookings, owner: booking.number},
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A step of a run, and the cost of the steps before."""

    run: str
    step: int
    before: float


@dataclass(frozen=True, slots=True)
class Booking:
    """A cost to book; `number` counts the bookings of its worker."""

    number: int
    cost: float
    is_call: bool
    is_unpriced: bool = False
    place: Place | None = None


class SharedBudget:
    """One worker's access to the money of its set.

    The methods block, and are called in threads. What the store did not take is booked with the next write.
    """

    def __init__(self, table: TaskTable, owner: str, limit: float, clock: Callable[[], float] = time.time) -> None:
        self._table = table
        self._owner = owner
        self.limit = limit
        self._clock = clock
        self._ended: set[str] = set()
        self._lock = threading.Lock()
        self._amount, self._calls = 0.0, 0
        """What the running calls of this worker hold."""
        self._number = 0
        self._unbooked: list[Booking] = []
        """The bookings of which no write is certain."""

    def reserve(self) -> tuple[Room, float]:
        """Hold money for a call, if there is room.

        Returns the answer, and the held amount in US dollars. Raises `StoreError`; the call then holds nothing.
        """
        with self._lock:
            while True:
                version, money, now = self._read()
                money = self._own(money, now)
                held = sum(amount for amount, _, _ in money.held.values())
                calls = sum(count for _, count, _ in money.held.values())
                left = self.limit - money.spent - held
                amount = money.dearest or left
                if self.limit <= money.spent or money.unpriced:
                    return Room.NEVER, 0.0
                if amount > left or left <= 0:
                    return (Room.LATER if calls else Room.NEVER), 0.0
                more = money.holding(self._owner, self._amount + amount, self._calls + 1, now)
                if self._put(more, version):
                    self._amount, self._calls = self._amount + amount, self._calls + 1
                    return Room.YES, amount

    def settle(self, held: float, cost: float | None, place: Place | None = None) -> None:
        """Book the cost of a call in place of the held amount.

        `cost` is None if the price is unknown. If the run is killed before the step at `place` is committed, `booked`
        returns the cost.
        """
        with self._lock:
            self._calls -= 1
            self._amount = max(0.0, self._amount - held) if self._calls else 0.0
            if place is not None:
                self._ended.discard(place.run)
            self._book(Booking(self._next(), cost or 0.0, is_call=True, is_unpriced=cost is None, place=place))

    def booked(self, place: Place) -> float:
        """Return the booked cost of a killed run's unfinished step."""
        step, before, booked = self._read()[1].unfinished.get(place.run, (0, 0.0, 0.0))
        return booked if (step, before) == (place.step, place.before) else 0.0

    def ended(self, run: str) -> None:
        """Forget the unfinished step of a run with the next booking."""
        self._ended.add(run)

    def renew(self) -> None:
        """Renew the money that this worker holds, and book the rest.

        Raises `StoreError`.
        """
        with self._lock:
            if self._calls or self._unbooked or self._owner in self._read()[1].held:
                self._write()

    def forget_unpriced(self) -> int:
        """Allow calls again after calls of unknown cost.

        Returns the number of calls of unknown cost.
        """
        while True:
            version, money, _ = self._read()
            after = replace(money, unpriced=0)
            if not money.unpriced or self._table.put_document(NAME, after.to_dict(), version):
                return money.unpriced

    def add(self, cost: float) -> None:
        """Book the cost of a run's calls that reserved nothing."""
        with self._lock:
            self._book(Booking(self._next(), cost, is_call=False))

    def is_empty(self) -> bool:
        """Return whether the cost limit is reached."""
        return self._read()[1].spent >= self.limit

    def why(self) -> str | None:
        """Return why no further call is allowed, or None."""
        _, money, _ = self._read()
        if money.unpriced:
            return (
                f"the cost of {money.unpriced} calls is unknown, so the limit of {self.limit:g} USD cannot be "
                "enforced: give the budget an assumed_price, or leave max_cost_usd out"
            )
        if money.spent + money.dearest > self.limit or money.spent >= self.limit:
            return (
                f"{money.spent:.4f} of {self.limit:g} USD are spent, and the dearest call cost {money.dearest:.4f}: "
                "raise max_cost_usd to continue"
            )
        return None

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _book(self, booking: Booking) -> None:
        self._unbooked.append(booking)
        try:
            self._write()
        except StoreError as error:
            log.warning("%s; %.4f USD are booked later", error, booking.cost)

    def _write(self) -> None:
        while True:
            version, money, now = self._read()
            if self._put(self._own(money, now), version):
                return

    def _own(self, money: Money, now: float) -> Money:
        """Return the money with what this worker holds and has not booked."""
        for booking in self._unbooked:
            money = money.booking(self._owner, booking)
        unfinished = {run: each for run, each in money.unfinished.items() if run not in self._ended}
        return replace(money.holding(self._owner, self._amount, self._calls, now), unfinished=unfinished)

    def _put(self, money: Money, version: int) -> bool:
        ended = self._ended - money.unfinished.keys()  # a run may end while this writes
        if not self._table.put_document(NAME, money.to_dict(), version):
            return False
        self._unbooked.clear()
        self._ended -= ended
        return True

    def _read(self) -> tuple[int, Money, float]:
        now = self._clock()
        version, document = self._table.document(NAME)
        return version, Money.from_dict(document).without_stale(now), now
