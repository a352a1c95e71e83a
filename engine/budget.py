"""Budgets as walls: what a run may use, what it has used, and the account that calls reserve from."""

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .errors import BudgetExceeded
from .reasons import StopReason

WARN_AT = 0.8


class EndedFromAbove(BudgetExceeded):
    """The run that this one belongs to has used up the budget of the family, and ends its children."""


@dataclass(frozen=True, slots=True)
class RuntimeBudget:
    """What a run may use: steps, seconds of work, tokens in and out, US dollars. None is no limit; steps have one.

    Raises ValueError for a limit that is not a finite number above 0.
    """

    max_steps: int = 20
    max_runtime_seconds: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None

    def __post_init__(self) -> None:
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
        names = ("max_steps", "max_runtime_seconds", "max_tokens", "max_cost_usd")
        return replace(self, **{n: v for n in names if (v := getattr(task_budget, n, None)) is not None})

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as a header carries it."""
        return {
            "max_steps": self.max_steps,
            "max_runtime_seconds": self.max_runtime_seconds,
            "max_tokens": self.max_tokens,
            "max_cost_usd": self.max_cost_usd,
        }


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in and out, and their cost in US dollars; `cost` is None where the price is not known."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("tokens_in", "tokens_out"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a whole number, 0 or more, got {value!r}")
        if self.cost is not None and not (isinstance(self.cost, int | float) and 0 <= self.cost < math.inf):
            raise ValueError(f"cost must be a finite number, 0 or more, or None, got {self.cost!r}")

    @property
    def tokens(self) -> int:
        """Tokens in and out together."""
        return self.tokens_in + self.tokens_out

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as an outcome carries it."""
        return {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out, "cost": self.cost}

    @classmethod
    def of(cls, value: Any) -> "Usage | None":
        """Usage from a Usage, a mapping, or an object shaped like OpenAI's (`prompt_tokens`, `completion_tokens`)."""
        if value is None or isinstance(value, Usage):
            return value

        def get(name: str) -> Any:
            return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)

        tokens_in = _first(get("tokens_in"), get("prompt_tokens"), get("input_tokens"))
        tokens_out = _first(get("tokens_out"), get("completion_tokens"), get("output_tokens"))
        if tokens_in is None and tokens_out is None:
            return None
        return cls(tokens_in or 0, tokens_out or 0, _first(get("cost"), get("cost_usd")))


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run has used: steps, seconds of work, tokens, and cost; `unpriced` calls have no known price."""

    steps: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out together."""
        return self.tokens_in + self.tokens_out

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as an end record carries it."""
        return {name: getattr(self, name) for name in self.__slots__}


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
        self._reserved = 0
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
        return self._own_used_up() or (self._parent.used_up() if self._parent is not None else None)

    def _own_used_up(self) -> StopReason | None:
        budget, running = self.budget, [usage for usage, _ in list(self._running.values())]
        if budget.max_tokens is not None and self.tokens + sum(u.tokens for u in running) >= budget.max_tokens:
            return StopReason.budget_tokens
        cost = self.cost + sum(u.cost or 0.0 for u in running)
        if budget.max_cost_usd is not None and (cost >= budget.max_cost_usd or self.unpriced):
            return StopReason.budget_cost
        return None

    def reserve(self, tokens: int) -> bool:
        """Sets tokens aside for a call about to start; False while other calls hold what is left.

        Raises BudgetExceeded when the call could not fit even if it were alone.
        """
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
            used = self.tokens + sum(usage.tokens for usage, _ in running)
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
            self.calls += 1
            self.tokens_in += usage.tokens_in
            self.tokens_out += usage.tokens_out
            if usage.cost is not None:
                self.cost += usage.cost
            elif usage.tokens:
                self.unpriced += 1
        self.warn("tokens", self.tokens, self.budget.max_tokens)
        self.warn("cost_usd", self.cost, self.budget.max_cost_usd)

    def restore(self, used: RunUsage) -> None:
        """Takes over what the run had used before; the parent has it already."""
        self.tokens_in, self.tokens_out, self.cost = used.tokens_in, used.tokens_out, used.cost
        self.calls, self.unpriced = used.calls, used.unpriced

    def warn(self, what: str, used: float, limit: float | None) -> None:
        """Warns once when 80 % of a limit is used."""
        if limit is not None and used >= WARN_AT * limit and what not in self.warned:
            self.warned.add(what)
            self._warn(what, used, limit)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, as a commit carries it."""
        return {
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cost": self.cost,
            "calls": self.calls,
            "unpriced": self.unpriced,
        }

    def explain(self, reason: StopReason) -> str:
        """What is used up, in a sentence."""
        if self._parent is not None and self._own_used_up() != reason:
            return self._parent.explain(reason)
        if reason == StopReason.budget_tokens:
            return f"the token budget is used up: {self.tokens} of {self.budget.max_tokens}"
        if self.unpriced and self.cost < (self.budget.max_cost_usd or 0):
            return (
                f"the price of {self.unpriced} call(s) is not known, so a budget of {self.budget.max_cost_usd} USD "
                "cannot be held; give usage with a cost, or leave max_cost_usd out"
            )
        return f"the cost budget is used up: {self.cost:.6g} of {self.budget.max_cost_usd} USD"
