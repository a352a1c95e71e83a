"""The blobs that one answer shows.

Each is read once, and all together are limited."""

from typing import Any

import orjson

from ...errors import TraceError
from ..file.blob import FolderBlobs, is_blob
from ..file.schema import DEPTH, is_shallow
from .wanted import check_wanted

LARGEST = 1 << 24
"""The largest blob, in bytes, that is parsed for a page; larger ones are shown by their size."""
_BYTES = 2 * LARGEST
"""The bytes of all blobs of one answer."""
_VALUES = 1 << 21
"""The values in all blobs of one answer, about: as Python objects, so many take some 200 MB."""


class Blobs:
    """Returns recorded values with the contents of their blobs.

    A blob stays the reference that it is if it is missing or corrupt, or if the answer has no room for it.
    """

    def __init__(self, folder: FolderBlobs, room: int = _BYTES) -> None:
        self._folder = folder
        self._known: dict[tuple[str, int], Any] = {}
        self._bytes, self._values = room, _VALUES
        self.left_out = 0
        """How many blobs had no room."""

    def __call__(self, recorded: Any) -> Any:
        """Return a recorded value, or the contents of its blob."""
        if not is_blob(recorded):
            return recorded
        key = (recorded["$blob"], recorded["bytes"])
        if key not in self._known:
            self._known[key] = self._read(recorded)
        return self._known[key]

    def _read(self, recorded: dict[str, Any]) -> Any:
        size = recorded["bytes"]
        if size > min(LARGEST, self._bytes):
            self.left_out += 1
            return recorded
        check_wanted()
        self._bytes -= size
        try:
            data = self._folder.get(recorded["$blob"], size)
            values = 1 if data.startswith(b'"') else sum(map(data.count, (b",", b"[", b"{")))
            if values > self._values:
                self.left_out += 1
                return recorded
            self._values -= values
            value = orjson.loads(data)
        except (TraceError, OSError, orjson.JSONDecodeError):
            return recorded
        return value if is_shallow(value, DEPTH) else recorded
