"""The memory of a process, outside its runs.

It keeps the latest values. A hook never finds its own value.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from ....engine import call_info
from ....engine.errors import NoRunError

T = TypeVar("T")
_MOST = 10_000


class Remembered(Generic[T]):
    """Values by key; the latest 10,000 are kept.

    If a run was suspended inside a hook, the hook runs again and does not find the value that it kept the first time.
    So the hook makes the same requests, and its effects get their recorded outcomes.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[str, T]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key, or None."""
        with self._lock:
            entry = self._values.get(key)
        return None if entry is None or entry[0] == _here() else entry[1]

    def keep(self, key: Hashable, value: T) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = (_here(), value)
            self._values.move_to_end(key)
            while len(self._values) > _MOST:
                self._values.popitem(last=False)


def _here() -> str:
    """Return the key of the current effect.

    The key is the same when the effect runs again.
    """
    try:
        return call_info().key
    except NoRunError:
        return "outside"
