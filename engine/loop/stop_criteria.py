"""Stop criteria: pure functions of a state and a meter that say whether, and why, a run ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..endings import StopReason
from ..state.model import dump


class Meter(Protocol):
    """What a run has used so far, earlier attempts included.

    A child run, and a fork, counts steps on from those of the run it came from, and the rest anew.
    """

    @property
    def steps(self) -> int:
        """Committed steps."""

    @property
    def elapsed(self) -> float:
        """Seconds of work; waits do not count."""

    @property
    def tokens(self) -> int:
        """Tokens in and out."""

    @property
    def cost(self) -> float:
        """Money in US dollars, of calls whose price is known."""


class StopCriteria(Protocol):
    """Looks at a state before each step. Pure: what it must remember it derives from the state."""

    def should_stop(self, state: Any, meter: Meter) -> StopReason | None:
        """The reason to stop, or None to go on."""


@dataclass(frozen=True)
class FinalResultCriteria:
    """Stops once `reduce` has called `set_stop`, or the state has a `final_result`. Always holds."""

    def should_stop(self, state: Any, meter: Meter) -> StopReason | None:
        """See StopCriteria."""
        if state.stop_reason is not None:
            return StopReason(state.stop_reason)
        return StopReason.final if state.final_result is not None else None


@dataclass(frozen=True)
class MaxStepsCriteria:
    """Stops after `max_steps` steps."""

    max_steps: int

    def should_stop(self, state: Any, meter: Meter) -> StopReason | None:
        """See StopCriteria."""
        return StopReason.max_steps if meter.steps >= self.max_steps else None


@dataclass(frozen=True)
class MaxRuntimeCriteria:
    """Stops between steps after `max_seconds` of work; a budget stops within a step too."""

    max_seconds: float

    def should_stop(self, state: Any, meter: Meter) -> StopReason | None:
        """See StopCriteria."""
        return StopReason.budget_time if meter.elapsed >= self.max_seconds else None


@dataclass(frozen=True)
class MaxTokensCriteria:
    """Stops between steps after `max_tokens` tokens."""

    max_tokens: int

    def should_stop(self, state: Any, meter: Meter) -> StopReason | None:
        """See StopCriteria."""
        return StopReason.budget_tokens if meter.tokens >= self.max_tokens else None


@dataclass(frozen=True)
class StagnationCriteria:
    """Stops when the last `max_stagnant_steps` entries of `history(state)` are all the same JSON.

    `history` gives one entry a step, from the state, such as `lambda state: state.positions`.
    """

    history: Callable[[Any], Sequence[Any]]
    max_stagnant_steps: int = 3

    def should_stop(self, state: Any, meter: Meter) -> StopReason | None:
        """See StopCriteria."""
        last = list(self.history(state)[-self.max_stagnant_steps :])
        if len(last) < self.max_stagnant_steps:
            return None
        first = dump(last[0])
        return StopReason.stagnation if all(dump(entry) == first for entry in last) else None
