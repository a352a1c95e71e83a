"""The usage of calls and runs: tokens and money."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in and out, and their cost in US dollars.

    `cost` is None if the price is unknown. `estimated` marks the tokens as an estimate, because no provider has
    reported them. `assumed` says that the cost comes from the budget's `assumed_price`. Raises ValueError for a
    negative or non-finite number.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    estimated: bool = False
    assumed: bool = False

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
        """Return the JSON form, as an outcome carries it."""
        document: dict[str, Any] = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out, "cost": self.cost}
        if self.estimated:
            document["estimated"] = True
        if self.assumed:
            document["assumed"] = True
        return document

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any]) -> "Usage":
        """Read a usage from its JSON form; raises ValueError."""
        marks = {name: doc.get(name) is True for name in ("estimated", "assumed")}
        return cls(doc.get("tokens_in", 0), doc.get("tokens_out", 0), doc.get("cost"), **marks)

    @classmethod
    def of(cls, value: Any) -> "Usage | None":
        """Return the usage in a Usage, mapping or object, or None.

        The names of refold (`tokens_in`), OpenAI (`prompt_tokens`) and Anthropic (`input_tokens`) are understood.
        """
        if value is None or isinstance(value, Usage):
            return value

        def get(name: str) -> Any:
            return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)

        tokens_in = _first(get("tokens_in"), get("prompt_tokens"), get("input_tokens"))
        tokens_out = _first(get("tokens_out"), get("completion_tokens"), get("output_tokens"))
        if tokens_in is None and tokens_out is None:
            return None
        cost = _first(get("cost"), get("cost_usd"))
        return cls(tokens_in or 0, tokens_out or 0, cost, get("estimated") is True, get("assumed") is True)


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


@dataclass(frozen=True, slots=True)
class RunUsage:
    """The usage of a run.

    It counts steps, seconds of work, tokens, and cost in US dollars. `calls` counts the calls that reported their
    usage; `unpriced` of them have no known price, and `cost` includes these only if the budget assumes a price.
    `estimated` counts the tokens of calls that reported none, and only under a budget of tokens or money.
    """

    steps: int = 0
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    calls: int = 0
    unpriced: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out together."""
        return self.tokens_in + self.tokens_out

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, as an end record carries it."""
        names = self.__slots__ if self.estimated else self.__slots__[:-1]
        return {name: getattr(self, name) for name in names}


COUNTED = ("tokens_in", "tokens_out", "cost", "calls", "unpriced", "estimated")
"""The fields that an Account counts; RunUsage has them under the same names."""


def counted(usage: Usage) -> RunUsage:
    """Return one call's usage as that of a run."""
    if usage.estimated:
        return RunUsage(cost=usage.cost or 0.0, estimated=usage.tokens)
    unpriced = usage.assumed or (usage.cost is None and usage.tokens > 0)
    return RunUsage(0, 0.0, usage.tokens_in, usage.tokens_out, usage.cost or 0.0, 1, int(unpriced))
