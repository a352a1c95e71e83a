"""A clock that only a test moves."""


class FakeClock:
    """A clock for an engine's `clock=`; time passes only in `advance`.

    `start` is its first time, in seconds since the epoch. Several runs can share one clock.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Advance the time by `seconds`; raise ValueError for a negative number."""
        if not seconds >= 0:
            raise ValueError(f"A clock goes forward: advance(seconds) takes 0 or more, got {seconds!r}.")
        self._elapsed += seconds
