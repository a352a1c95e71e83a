"""URLs of stores: the paths in them, and what is shown."""

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from ...errors import UsageError


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
        raise UsageError(f"{text!r} has a zero byte (%00), and no file's name can have one")
    return Path(path)


def without_password(url: str) -> str:
    """Return a URL without its password and parameters that look secret."""
    shown = re.sub(r"(://[^/@:]*):[^@/]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:[a-z_]*(?:password|secret|token|key)[a-z_]*)=)[^&#]*", r"\1***", shown)
