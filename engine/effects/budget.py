"""Budgets as walls: what a run may use, what it has used, and the account that calls reserve from."""

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..endings import StopReason
from ..errors import BudgetExceeded, EngineUsageError, message_of
from .usage import COUNTED, RunUsage, Usage, is_unpriced

WARN_AT = 0.8


class EndedFromAbove(BudgetExceeded):
    """The run that this one belongs to has used up the budget of the family, and ends its children."""


@dataclass(frozen=True, slots=True)
class RuntimeBudget:
    """What a run may use: steps, seconds of work, tokens in and out, US dollars. None is no limit; steps have one.

    `assumed_price` is for calls whose price nobody knows, in US dollars per million tokens in and out. With None, such
    a call ends a run that has a `max_cost_usd`: it is never free. A call that tells no tokens counts by an estimate.

    Raises ValueError for a limit that is not a finite number above 0, and for a price below 0.
    """

    max_steps: int = 20
    max_runtime_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    assumed_price: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.assumed_price is not None:
            object.__setattr__(self, "assumed_price", _price(self.assumed_price))
        for name in ("max_steps", "max_tokens"):
            value = getattr(self, name)
            if value is None and name == "max_tokens":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("max_runtime_seconds", "max_cost_usd"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be a finite number above 0, got {value!r}")

    def under(self, task_budget: Any) -> "RuntimeBudget":
        """The effective budget: each field that the task's budget sets takes this one's place."""
        names = ("max_steps", "max_runtime_seconds", "max_tokens", "max_cost_usd", "assumed_price")
        return replace(self, **{n: v for n in names if (v := getattr(task_budget, n, None)) is not None})

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> "RuntimeBudget":
        """The budget that a trace's record carries; raises EngineUsageError where it is none."""
        try:
            return cls(**doc)
        except (TypeError, ValueError) as error:
            raise EngineUsageError(f"the trace has a budget that is none: {message_of(error)}") from None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as a header carries it."""
        document: dict[str, Any] = {
            "max_steps": self.max_steps,
            "max_runtime_seconds": self.max_runtime_seconds,
            "max_tokens": self.max_tokens,
            "max_cost_usd": self.max_cost_usd,
        }
        return document if self.assumed_price is None else {**document, "assumed_price": [*self.assumed_price]}


def _price(given: Any) -> tuple[float, float]:
    """A price for tokens in and out, from two numbers."""
    numbers = list(given) if isinstance(given, list | tuple) else []
    good = all(isinstance(n, int | float) and not isinstance(n, bool) and 0 <= n < math.inf for n in numbers)
    if len(numbers) != 2 or not good:
        raise ValueError(
            "assumed_price is two numbers of at least 0, US dollars per million tokens in and out, "
            f"such as (3, 15); got {given!r}"
        )
    return float(numbers[0]), float(numbers[1])


class Account:
    """One account of tokens and money, which all calls of a run draw on; it is safe to use from several threads.

    `on_warning(what, used, limit)` is called once for each limit of which 80 % is used. With a `parent`, the account
    counts what its own run uses, and draws it from the parent's: a family spends one budget together, and `budget` is
    the most of it that this run may have.
    """

    def __init__(
        self,
        budget: RuntimeBudget,
        on_warning: Callable[[str, float, float], None],
        parent: "Account | None" = None,
    ) -> None:
        self.budget = budget
        self._parent = parent
        self.tokens_in = 0
        self.tokens_out = 0
        self.cost = 0.0
        self.calls = 0
        self.unpriced = 0
        self.estimated = 0
        """Tokens of calls that told none."""
        self._reserved = 0
        limited = budget.max_tokens is not None or budget.max_cost_usd is not None
        self.is_limited: bool = limited or (parent is not None and parent.is_limited)
        """Whether tokens or money are limited, here or in the family: calls that tell no tokens are counted then."""
        self._running: dict[object, tuple[Usage, int]] = {}
        """What calls that have not ended were charged so far, and what they had reserved."""
        self.warned = set[str]()
        self._warn = on_warning
        self._lock = threading.Lock()

    @property
    def tokens(self) -> int:
        """Tokens used, in and out."""
        return self.tokens_in + self.tokens_out

    def used_up(self) -> StopReason | None:
        """Which of the limits is reached, if any."""
        if not self.is_limited:
            return None
        return self._own_used_up() or (self._parent.used_up() if self._parent is not None else None)

    def _own_used_up(self) -> StopReason | None:
        budget, running = self.budget, [usage for usage, _ in list(self._running.values())]
        counted = self.tokens + self.estimated
        if budget.max_tokens is not None and counted + sum(u.tokens for u in running) >= budget.max_tokens:
            return StopReason.budget_tokens
        cost = self.cost + sum(u.cost or 0.0 for u in running)
        if budget.max_cost_usd is not None and (cost >= budget.max_cost_usd or self._is_price_missing):
            return StopReason.budget_cost
        return None

    @property
    def _is_price_missing(self) -> bool:
        return (self.unpriced > 0 or self.estimated > 0) and self.budget.assumed_price is None

    def priced(self, usage: Usage | None) -> Usage | None:
        """What a call has used, with the price that the budget assumes where none is known."""
        if usage is None or usage.cost is not None or self.budget.assumed_price is None:
            return usage
        price_in, price_out = self.budget.assumed_price
        return replace(usage, cost=(usage.tokens_in * price_in + usage.tokens_out * price_out) / 1e6, assumed=True)

    def reserve(self, tokens: int) -> bool:
        """Sets tokens aside for a call about to start; False while other calls hold what is left.

        Raises BudgetExceeded when the call could not fit even if it were alone.
        """
        if not self.is_limited:
            return True
        if not self._reserve_own(tokens):
            return False
        given = self._parent is None
        try:
            if self._parent is not None:
                given = self._parent.reserve(tokens)
        finally:
            if not given:
                self._give_back(tokens)
        return given

    def _reserve_own(self, tokens: int) -> bool:
        limit = self.budget.max_tokens
        if limit is None and self.budget.max_cost_usd is None:
            return True
        with self._lock:
            reason = self._own_used_up()
            if reason is not None:
                raise BudgetExceeded(reason, self.explain(reason))
            if limit is None or not tokens:
                return True
            running = list(self._running.values())
            used = self.tokens + self.estimated + sum(usage.tokens for usage, _ in running)
            if used + tokens > limit:
                raise BudgetExceeded(
                    StopReason.budget_tokens,
                    f"a call that needs {tokens} tokens does not fit: {used} of {limit} are used",
                )
            unused = self._reserved - sum(min(usage.tokens, reserved) for usage, reserved in running)
            if used + unused + tokens > limit:
                return False
            self._reserved += tokens
            return True

    def _give_back(self, reserved: int) -> None:
        with self._lock:
            if self.budget.max_tokens is not None:
                self._reserved -= reserved

    def charge(self, call: object, usage: Usage, reserved: int) -> None:
        """Counts what a call that has `reserved` tokens was charged so far, until it is settled."""
        self._running[call] = (usage, reserved)
        if self._parent is not None:
            self._parent.charge(call, usage, reserved)

    def settle(self, reserved: int, usage: Usage | None, call: object = None) -> None:
        """Gives back what was reserved and books what a call has used, in place of what it was charged so far."""
        if self._parent is not None:
            self._parent.settle(reserved, usage, call)
        self._running.pop(call, None)
        self._give_back(reserved)
        if usage is None:
            return
        with self._lock:
            if usage.estimated:
                self.estimated += usage.tokens
            else:
                self.calls += 1
                self.tokens_in += usage.tokens_in
                self.tokens_out += usage.tokens_out
            self.cost += usage.cost or 0.0
            self.unpriced += is_unpriced(usage)
        self._warn_of_both()

    def add(self, used: RunUsage) -> None:
        """Counts what a child run of an earlier attempt has used."""
        if self._parent is not None:
            self._parent.add(used)
        with self._lock:
            for name in COUNTED:
                setattr(self, name, getattr(self, name) + getattr(used, name))
        self._warn_of_both()

    def _warn_of_both(self) -> None:
        self.warn("tokens", self.tokens + self.estimated, self.budget.max_tokens)
        self.warn("cost_usd", self.cost, self.budget.max_cost_usd)

    def restore(self, used: RunUsage) -> None:
        """Takes over what the run had used before; the parent has it already."""
        for name in COUNTED:
            setattr(self, name, getattr(used, name))

    def warn(self, what: str, used: float, limit: float | None) -> None:
        """Warns once when 80 % of a limit is used."""
        if limit is not None and used >= WARN_AT * limit and what not in self.warned:
            self.warned.add(what)
            self._warn(what, used, limit)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as a commit carries it."""
        document = {
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cost": self.cost,
            "calls": self.calls,
            "unpriced": self.unpriced,
        }
        return {**document, "estimated": self.estimated} if self.estimated else document

    def explain(self, reason: StopReason) -> str:
        """What is used up, in a sentence."""
        if self._parent is not None and self._own_used_up() != reason:
            return self._parent.explain(reason)
        if reason == StopReason.budget_tokens:
            return f"the token budget is used up: {self.tokens + self.estimated} of {self.budget.max_tokens}"
        if self._is_price_missing and self.cost < (self.budget.max_cost_usd or 0):
            return (
                f"what calls have cost is not known ({self.unpriced} without a price, {self.estimated} tokens that "
                f"nobody told), so a budget of {self.budget.max_cost_usd} USD cannot be held; give usage with a cost, "
                "or the budget an assumed_price, or leave max_cost_usd out"
            )
        return f"the cost budget is used up: {self.cost:.6g} of {self.budget.max_cost_usd} USD"
