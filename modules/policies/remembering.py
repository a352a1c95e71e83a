"""What a process remembers beside its runs.

It keeps the latest values, and a hook never finds what it put in itself.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from ...engine import call_info
from ...errors import NoRunError

T = TypeVar("T")
_MOST = 10_000


class Remembered(Generic[T]):
    """Values by key; the 10,000 that were put in last are kept.

    A hook that is entered again, because its run was suspended inside of it, does not find what it put in the first
    time. So it goes the same way, and what it performs there is taken from the trace.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[str, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key; None if there is none."""
        with self._lock:
            found = self._values.get(key)
        return None if found is None or found[0] == _here() else found[1]

    def keep(self, key: Hashable, value: T) -> None:
        """Put a value in."""
        with self._lock:
            self._values[key] = (_here(), value)
            self._values.move_to_end(key)
            while len(self._values) > _MOST:
                self._values.popitem(last=False)


def _here() -> str:
    """Return the key of the effect that this is called in.

    It is the same when the effect is entered again.
    """
    try:
        return call_info().key
    except NoRunError:
        return "outside"
