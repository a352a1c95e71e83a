"""What a process remembers beside its runs: the latest of it, and never what the hook that looks has itself put in."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from ...engine import call_info
from ...errors import NoRunError

T = TypeVar("T")
_MOST = 10_000


class Remembered(Generic[T]):
    """Values by key, of which the 10,000 that were put in last are kept.

    A hook that is entered again, because its run was suspended inside of it, does not find what it put in the first
    time: it goes the same way, and what it performs there is taken from the trace.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[str, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """The value of a key; None where there is none."""
        with self._lock:
            found = self._values.get(key)
        return None if found is None or found[0] == _here() else found[1]

    def keep(self, key: Hashable, value: T) -> None:
        """Puts a value in."""
        with self._lock:
            self._values[key] = (_here(), value)
            self._values.move_to_end(key)
            while len(self._values) > _MOST:
                self._values.popitem(last=False)


def _here() -> str:
    """The effect that this is called in, by its key, which is the same when it is entered again."""
    try:
        return call_info().key
    except NoRunError:
        return "outside"
