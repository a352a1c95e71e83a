"""Keeps a mirror of a store up to date in the background.

It looks again and again, as no store reports its changes.
"""

import logging
import threading
import time

from ..errors import StoreError
from ..traces.stores.mirror import Mirror

_logger = logging.getLogger("refold.view")
_EVERY = 1.0
"""Seconds between two looks at a store that answers at once."""
_SHARE = 4
"""A look that took long is followed by a pause this many times as long: the store has others to serve."""


class Following(threading.Thread):
    """The thread that looks; `stop` ends it."""

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(name="refold view: following", daemon=True)
        self._mirror = mirror
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Refresh the mirror again and again.

        While the store cannot be read, the mirror keeps its files.
        """
        is_told, took = False, 0.0
        while not self._stop_asked.wait(max(_EVERY, _SHARE * took)):
            begin = time.monotonic()
            try:
                self._mirror.refresh()
                is_told = False
            except (StoreError, OSError) as error:
                if not is_told:
                    _logger.warning("the page shows what was read before: %s", error)
                is_told = True
            took = time.monotonic() - begin

    def stop(self) -> None:
        """Stop looking, and wait until the look under way is over."""
        self._stop_asked.set()
        self.join()
