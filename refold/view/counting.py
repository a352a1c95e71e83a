"""A background count of errors and shapes of large traces.

Only traces without these counts are read.
"""

import threading

from ..traces.index.folder import Folder

_EVERY = 0.25
"""Seconds between two looks for rows that have become partial."""


class Counting(threading.Thread):
    """The thread that counts; `stop` ends it."""

    def __init__(self, folder: Folder) -> None:
        super().__init__(name="refold view: counting", daemon=True)
        self._folder = folder
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Read the folder, and count until `stop`."""
        self._folder.scan()
        while not self._stop_asked.wait(_EVERY):
            for name in self._folder.partial():
                if self._stop_asked.is_set():
                    return
                self._folder.complete((name,))

    def stop(self) -> None:
        """Stop counting, and wait until the trace under way is done."""
        self._stop_asked.set()
        self.join()
