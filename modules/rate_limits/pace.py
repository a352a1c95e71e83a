"""The pace of requests to a provider with an unknown limit.

The pace is learned from the requests that the provider accepts and refuses.

    doubling ──refused──> searching ──refused──> holding ──quiet──> probing ──no room──> holding
    x 2 a second          + 5 % a second         95 % of the       + 1 % a second
                                                 ceiling

A refusal cuts the pace, at most once a second, and sets the *ceiling*, an estimate of the provider's limit. While a
provider refuses, its bucket of saved requests is empty, so the rate of accepted requests since the last cut is its
limit. While the pace grows slowly, the limit is near the pace itself. The first refusal may be a chance event, or be
delayed by a full bucket, so the pace searches once more before it holds. Each probe costs a refusal; probes are so rare
that refusals stay below 1 % of requests.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

FIRST_RATE = 4.0
"""Requests a second at first."""
CUT, HOLD = 0.85, 0.95
"""The pace right after a refusal, and while it holds: parts of the ceiling. The cut lets a provider's bucket fill."""
SEARCH, PROBE, RECOVER = 0.05, 0.01, 0.03
"""The growth of the pace in a second: while searching, while probing, and from the cut up to the hold."""
WINDOW = 2.0
"""Seconds in which accepted requests are counted while the pace doubles."""
QUIET_SECONDS, QUIET_REQUESTS, LONGEST_QUIET = 8.0, 200.0, 300.0
"""The time between probes: some seconds, and some requests, doubled after each probe that was refused."""
LONGEST_PAUSE = 120.0
"""The longest wait in seconds; a longer retry-after may be a mistake."""


@dataclass(frozen=True, slots=True)
class Report:
    """The requests since the last report.

    `now` is the time of the report, in seconds of any clock. `limited` says that requests had to wait at the gate.
    `retry_after` is the longest wait that a refusal requested.
    """

    now: float
    accepted: int = 0
    refused: int = 0
    limited: bool = False
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """Requests a second, and the figures behind them.

    `after` returns the next pace. Times come from the reports, not from a clock.
    """

    at: float
    rate: float = FIRST_RATE
    phase: str = "doubling"
    ceiling: float | None = None
    paused_until: float = 0.0
    cut_at: float | None = None
    since: float = 0.0
    """The time at which `accepted` was 0: the start, or the last cut."""
    accepted: int = 0
    recent: tuple[tuple[float, int], ...] = ()
    """Times and numbers of requests accepted within the window, while the pace doubles."""
    quiet: float = QUIET_SECONDS
    probe_at: float = 0.0

    @classmethod
    def start(cls, now: float) -> Self:
        """Return the pace before the first request."""
        return cls(at=now, since=now)

    def after(self, report: Report) -> "Pace":
        """Return the pace after a report."""
        now = max(report.now, self.at)
        pace = replace(self, at=now, accepted=self.accepted + report.accepted)
        if self.phase == "doubling":
            kept = (*self.recent, (now, report.accepted)) if report.accepted else self.recent
            pace = replace(pace, recent=tuple(each for each in kept if now - each[0] <= WINDOW))
        if report.refused:
            return pace._refused(now, report.retry_after)
        return pace._grown(now, now - self.at) if report.limited and now >= self.paused_until else pace

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self:
        """Return the pace of a JSON form."""
        return cls(**{**document, "recent": tuple((at, count) for at, count in document["recent"])})

    def _refused(self, now: float, retry_after: float | None) -> "Pace":
        pause = min(retry_after or 0.0, LONGEST_PAUSE)
        pace = replace(self, paused_until=max(self.paused_until, now + pause))
        if self.cut_at is not None and now - self.cut_at < max(1.0, 2 / self.rate):
            return pace  # refusals of requests sent before the cut
        ceiling = self._accepted_rate(now)
        quiet = min(self.quiet * 2, LONGEST_QUIET) if self.phase == "probing" else self._first_quiet(ceiling)
        is_settled = self.phase != "doubling"
        return replace(
            pace,
            rate=CUT * ceiling,
            phase="holding" if is_settled else "searching",
            ceiling=ceiling,
            cut_at=now,
            since=now,
            accepted=0,
            recent=(),
            quiet=quiet,
            probe_at=now + quiet,
        )

    def _accepted_rate(self, now: float) -> float:
        """Return an estimate of the provider's limit at a refusal."""
        span = now - self.since
        if self.phase == "doubling":
            counted = sum(count for _, count in self.recent)
            return max(counted, 1) / max(min(WINDOW, span), 0.5)
        mean = self.accepted / span if span > 0 else 0.0
        soon_after = span < 5.0 and self.accepted >= 10
        return mean if mean and (soon_after or mean < 0.7 * self.rate) else self.rate

    def _grown(self, now: float, seconds: float) -> "Pace":
        match self.phase:
            case "doubling":
                return replace(self, rate=self.rate * 2.0 ** min(seconds, 1.0))
            case "searching":
                return replace(self, rate=self.rate * (1 + SEARCH) ** seconds)
        ceiling = self.ceiling or self.rate
        if self.phase == "probing":
            rate = self.rate * (1 + PROBE) ** seconds
            return replace(self, rate=rate, ceiling=max(ceiling, rate))
        if now >= self.probe_at:
            return replace(self, phase="probing")
        return replace(self, rate=max(self.rate, min(HOLD * ceiling, self.rate * (1 + RECOVER) ** seconds)))

    def _first_quiet(self, ceiling: float) -> float:
        return max(QUIET_SECONDS, QUIET_REQUESTS / ceiling)
