"""The cost limit of a set, shared by all its processes.

Before a call starts, an upper bound of its cost is held, so that no other call can spend it. A call without a known
bound runs alone. A call for which too little is left waits until others end; one that costs more than will ever be left
stops the set.

Each worker writes only its own account, as totals. So a write whose fate is unknown is simply repeated.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

import anyio

from ...errors import StoreError
from ...traces.stores import TaskTable

log = logging.getLogger("refold")
NAME = "money"
"""The name of the document that the processes share."""
STALE_SECONDS = 60.0
"""The seconds after which the calls of a silent process are treated as lost.

A live process renews its account more often, however long its calls take.
"""


_DUST = 1e-9
"""More than the rounding errors of sums, in US dollars."""

Held = tuple[float | None, ...]
"""The bounds of running calls; None for a call without a bound, which runs alone."""


class Room(Enum):
    """The answer to a call that needs money."""

    YES = "yes"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Place:
    """A step of a run, and the cost of the steps before."""

    run: str
    step: int
    before: float


@dataclass(frozen=True, slots=True)
class Account:
    """What one worker has spent, and what its running calls hold, in US dollars.

    `possible` is the part of `spent` that lost calls may have cost, at most: calls that failed, or whose worker died.
    `lost` counts such calls without a bound. `highest` is the highest cost of a call without a bound, and `unpriced`
    the number of calls of unknown cost. `refused` is the bound of the call that stopped the set.
    `unfinished` has, by run, the step in progress, the run's cost in its trace before that step, and the cost of calls
    booked since.
    """

    spent: float = 0.0
    possible: float = 0.0
    lost: int = 0
    highest: float = 0.0
    unpriced: int = 0
    held: Held = ()
    refused: float | None = None
    at: float = 0.0
    unfinished: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: dict[str, Any], now: float) -> "Account":
        """Return the account in the JSON form, with the calls of a silent process as lost calls."""
        account = cls(**{**document, "held": tuple(document["held"])})
        if now - account.at <= STALE_SECONDS:
            return account
        for bound in account.held:
            account = account.losing(bound)
        return replace(account, held=())

    def losing(self, bound: float | None) -> "Account":
        """Return the account after a call that may have cost its bound."""
        if bound is None:
            return replace(self, lost=self.lost + 1)
        return replace(self, spent=self.spent + bound, possible=self.possible + bound)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The accounts of all workers of a set.

    `forgiven` is the number of calls of unknown cost that count as free.
    """

    limit: float
    accounts: Mapping[str, Account]
    forgiven: int = 0

    @classmethod
    def from_dict(cls, document: dict[str, Any] | None, limit: float | None, now: float) -> "Ledger":
        """Return the ledger in the JSON form; without a `limit`, with the recorded one."""
        found = document or {}
        accounts = {owner: Account.from_dict(each, now) for owner, each in found.get("accounts", {}).items()}
        if "spent" in found:  # written before workers had accounts
            accounts[""] = Account(spent=found["spent"], highest=found["dearest"], unpriced=found["unpriced"])
        return cls(found.get("limit", 0.0) if limit is None else limit, accounts, found.get("forgiven", 0))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"limit": self.limit, "accounts": {k: asdict(v) for k, v in self.accounts.items()}} | (
            {"forgiven": self.forgiven} if self.forgiven else {}
        )

    @property
    def highest(self) -> float:
        """The highest cost of a call without a bound."""
        return max((each.highest for each in self.accounts.values()), default=0.0)

    @property
    def possible(self) -> float:
        """The part of `spent` that lost calls may have cost.

        A lost call without a bound is assumed to cost as much as the most expensive one, or all that is left.
        """
        known, lost = sum(each.spent for each in self.accounts.values()), sum(each.lost for each in self._accounts())
        unbound = lost * self.highest or (max(0.0, self.limit - known) if lost else 0.0)
        return sum(each.possible for each in self._accounts()) + unbound

    @property
    def spent(self) -> float:
        """All that the calls of the set have cost, or may have cost."""
        return sum(each.spent - each.possible for each in self._accounts()) + self.possible

    @property
    def unpriced(self) -> int:
        """The number of calls whose unknown cost stops the set."""
        return max(0, sum(each.unpriced for each in self._accounts()) - self.forgiven)

    def room(self, bound: float | None) -> Room:
        """Return whether a call with this bound may start."""
        held = [each for account in self._accounts() for each in account.held]
        left = self.limit - self.spent + _DUST
        if self.spent >= self.limit or self.unpriced or (self.highest if bound is None else bound) > left:
            return Room.NEVER
        if bound is None or None in held:
            return Room.LATER if held else Room.YES
        return Room.YES if sum(each or 0.0 for each in held) + bound <= left else Room.LATER

    def excess(self) -> str | None:
        """Return a sentence on what was spent beyond the limit, or None."""
        more = self.spent - self.limit
        return f"{self._spent()}, {more:.4f} more than max_cost_usd allows" if more > _DUST else None

    def why(self, command: str) -> str | None:
        """Return why a command may make no further call, or None."""
        if self.unpriced:
            return (
                f"the cost of {self.unpriced} calls is unknown, so the limit of {self.limit:g} USD cannot be "
                "enforced: give the budget an assumed_price, or leave max_cost_usd out"
            )
        bounds = [each.refused or 0.0 for owner, each in self.accounts.items() if owner.startswith(f"{command}/")]
        needed = max((*bounds, self.highest))
        if self.spent < self.limit and self.spent + needed <= self.limit:
            return None
        call = f", and the next call may cost {needed:.4f}" if needed else ""
        return f"{self.excess() or self._spent()}{call}: raise max_cost_usd to continue"

    def _accounts(self) -> Iterator[Account]:
        return iter(self.accounts.values())

    def _spent(self) -> str:
        lost = f" ({self.possible:.4f} of them at most, by calls that failed or were lost)" if self.possible else ""
        return f"{self.spent:.4f} of {self.limit:g} USD are spent{lost}"


def read_ledger(table: TaskTable, limit: float | None = None, now: float | None = None) -> tuple[int, Ledger]:
    """Return the version of a set's ledger, and the ledger."""
    version, document = table.document(NAME)
    return version, Ledger.from_dict(document, limit, time.time() if now is None else now)


def excess_in(document: Any) -> str | None:
    """Return what a set has spent beyond its limit, by a document of any content."""
    try:
        return Ledger.from_dict(document, None, time.time()).excess()
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
        return None


class SharedBudget:
    """One worker's access to the ledger of its set.

    The methods block, and are called in threads. What the store did not take is in the next write.
    """

    def __init__(self, table: TaskTable, owner: str, limit: float, clock: Callable[[], float] = time.time) -> None:
        self._table = table
        self._owner = owner
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._account = Account()
        self._unfinished: dict[str, tuple[int, float, float]] = {}
        self._is_written = True
        self.queue = anyio.Lock()
        """The order in which the requests of this worker reserve money."""

    def reserve(self, bound: float | None) -> Room:
        """Hold the bound of a call's cost, if there is room.

        Raises `StoreError`; the call then holds nothing.
        """
        with self._lock:
            while True:
                version, ledger = self._read()
                room = ledger.room(bound)
                if room is Room.LATER:
                    return room
                if room is Room.YES:
                    account = replace(self._account, held=(*self._account.held, bound))
                else:
                    account = replace(self._account, refused=bound)
                if self._put(version, ledger, account):
                    return room

    def settle(self, held: Held, cost: float | None, place: Place | None = None) -> None:
        """Book the cost of a call in place of what it holds.

        `cost` is None if the price is unknown. If the run is killed before the step at `place` is committed, `booked`
        returns the cost.
        """
        with self._lock:
            account = self._without(held)
            if cost is None:
                account = replace(account, unpriced=account.unpriced + 1)
            elif held == (None,):
                account = replace(account, highest=max(account.highest, cost))
            if place is not None:
                booked = _booked(self._unfinished, place) + (cost or 0.0)
                self._unfinished[place.run] = (place.step, place.before, booked)
            self._change(replace(account, spent=account.spent + (cost or 0.0)))

    def lose(self, held: Held, bound: float | None) -> None:
        """Book a call that failed, and may have cost its bound."""
        with self._lock:
            self._change(self._without(held).losing(bound))

    def booked(self, place: Place) -> float:
        """Return the booked cost of a killed run's unfinished step, and go on from it."""
        with self._lock:
            found = max(_booked(each.unfinished, place) for each in self._read()[1].accounts.values())
            if found:
                self._unfinished[place.run] = (place.step, place.before, found)
            return found

    def ended(self, run: str) -> None:
        """Forget the unfinished step of a run with the next write."""
        self._unfinished.pop(run, None)

    def add(self, cost: float) -> None:
        """Book the cost of a run's calls that reserved nothing."""
        with self._lock:
            self._change(replace(self._account, spent=self._account.spent + cost))

    def renew(self) -> None:
        """Renew what this worker holds, and write what the store did not take.

        Raises `StoreError`.
        """
        with self._lock:
            if self._account.held or not self._is_written:
                self._write()

    def is_empty(self) -> bool:
        """Return whether the cost limit is reached."""
        ledger = self._read()[1]
        return ledger.spent >= ledger.limit

    def forget_unpriced(self) -> int:
        """Allow calls again after calls of unknown cost.

        Returns the number of calls of unknown cost.
        """
        while True:
            version, ledger = self._read()
            after = replace(ledger, forgiven=ledger.forgiven + ledger.unpriced)
            if not ledger.unpriced or self._table.put_document(NAME, after.to_dict(), version):
                return ledger.unpriced

    def _without(self, held: Held) -> Account:
        left = list(self._account.held)
        for bound in held:
            left.remove(bound)
        return replace(self._account, held=tuple(left))

    def _change(self, account: Account) -> None:
        self._account, self._is_written = account, False
        try:
            self._write()
        except StoreError as error:
            log.warning("%s; %.4f USD that this worker has spent are written later", error, account.spent)

    def _write(self) -> None:
        while True:
            version, ledger = self._read()
            if self._put(version, ledger, self._account):
                return

    def _put(self, version: int, ledger: Ledger, account: Account) -> bool:
        self._is_written = False  # if the store fails, the write may have been made
        whole = replace(account, at=self._clock(), unfinished=dict(self._unfinished))
        accounts = {**ledger.accounts, self._owner: whole}
        if not self._table.put_document(NAME, replace(ledger, accounts=accounts).to_dict(), version):
            return False
        self._account, self._is_written = account, True
        return True

    def _read(self) -> tuple[int, Ledger]:
        now = self._clock()
        version, ledger = read_ledger(self._table, self._limit, now)
        mine = replace(self._account, unfinished=self._unfinished)
        return version, replace(ledger, accounts={**ledger.accounts, self._owner: mine})


def _booked(unfinished: Mapping[str, tuple[int, float, float]], place: Place) -> float:
    step, before, booked = unfinished.get(place.run, (place.step, place.before, 0.0))
    return booked if (step, before) == (place.step, place.before) else 0.0
