"""Keeps a mirror of a store current in the background.

It polls, because no store reports its changes.
"""

import logging
import threading
import time

from ..errors import StoreError
from ..traces.stores.mirror import Mirror

_logger = logging.getLogger("refold.view")
_EVERY = 1.0
"""The number of seconds between two polls of a store that answers at once."""
_SHARE = 4
"""A poll that took long is followed by a pause this many times as long, because the store has other clients."""


class StoreFollower(threading.Thread):
    """The polling thread; `stop` ends it."""

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(name="refold view: following", daemon=True)
        self._mirror = mirror
        self._stop_requested = threading.Event()

    def run(self) -> None:
        """Refresh the mirror repeatedly.

        While the store cannot be read, the mirror keeps its files.
        """
        is_logged, took = False, 0.0
        while not self._stop_requested.wait(max(_EVERY, _SHARE * took)):
            begin = time.monotonic()
            try:
                self._mirror.refresh()
                is_logged = False
            except (StoreError, OSError) as error:
                if not is_logged:
                    _logger.warning("the page shows what was read before: %s", error)
                is_logged = True
            took = time.monotonic() - begin

    def stop(self) -> None:
        """Stop polling, and wait for the current poll."""
        self._stop_requested.set()
        self.join()
