"""Paths in the URLs of stores."""

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from ..errors import UsageError


def in_url(path: Path) -> str:
    """Return a path as a part of a URL."""
    return "".join(
        mark if mark.isprintable() and mark not in "%?#" else quote(os.fsencode(mark), safe="") for mark in str(path)
    )


def path_in(text: str) -> Path:
    """Return the path in a URL, where `%23` means `#`.

    Raises UsageError for `%00`, which no file's name can have.
    """
    path = os.fsdecode(unquote_to_bytes(os.fsencode(text)))
    if "\0" in path:
        raise UsageError(f"{text!r} has a zero byte (%00), and no file's name can have one.")
    return Path(path)
