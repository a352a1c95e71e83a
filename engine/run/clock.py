"""The clock of a run: the system's, or a test's."""

import time as _time
from typing import Protocol


class Clock(Protocol):
    """The source of a run's time."""

    def time(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment, which never decrease."""


class SystemClock:
    """The machine's clock."""

    time = staticmethod(_time.time)
    monotonic = staticmethod(_time.monotonic)
