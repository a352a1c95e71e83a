"""The clock of a run: the system's, or one that a test moves."""

import time as _time
from typing import Protocol


class Clock(Protocol):
    """Where a run gets its time from."""

    def time(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds since some moment, never going back."""


class SystemClock:
    """The machine's clock."""

    time = staticmethod(_time.time)
    monotonic = staticmethod(_time.monotonic)
