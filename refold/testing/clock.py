"""A clock that stands still until a test moves it."""


class FakeClock:
    """Give it to an engine as `clock=`; time passes only in `advance`.

    `start` is the time it shows at first, in seconds since the epoch. Several runs can share it; their times then are
    those of this one clock.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0

    def time(self) -> float:
        """Seconds since the epoch."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Lets `seconds` pass, 0 or more; raises ValueError for less, as time does not run backwards."""
        if not seconds >= 0:
            raise ValueError(f"a clock goes forward: advance(seconds) takes 0 or more, got {seconds!r}")
        self._elapsed += seconds
