"""Text from traces made fit for a terminal: no control characters, values as JSON, long ones cut with a hint."""

import json
from datetime import datetime
from typing import Any

from ...printable import printable as clean
from ...printable import printable_json

__all__ = [
    "LONG",
    "SHORT",
    "brief",
    "clean",
    "count_text",
    "cut",
    "moment_text",
    "seconds_text",
    "size_text",
    "value_text",
]

SHORT = 60
"""Characters of a value that is shown within a line."""
LONG = 400
"""Characters of a value that is shown on lines of its own."""


def value_text(value: Any) -> str:
    """A JSON value in one line, safe to print."""
    return printable_json(json.dumps(value, ensure_ascii=False))


def cut(text: str, limit: int | None, hint: str = "") -> str:
    """The text, or its first `limit` characters and how many more there are; `hint` says how to see them."""
    if limit is None or len(text) <= limit + 20:
        return text
    more = f"{len(text) - limit:,} more characters"
    return f"{text[:limit]}… ({more}{'; ' + hint if hint else ''})"


def brief(text: str, limit: int = SHORT) -> str:
    """The text in one line of at most `limit` characters, ended by an ellipsis if it was cut."""
    text = clean(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def seconds_text(seconds: float) -> str:
    """A duration as people say it: 12 ms, 3.4 s, 2 min 05 s."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def moment_text(at: float) -> str:
    """Seconds since the epoch as a local date and time; what no calendar has, as the number."""
    try:
        return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return f"{at:g} s after 1970"


def size_text(size: int) -> str:
    """A number of bytes in units of 1000."""
    if size < 1000:
        return f"{size} B"
    amount = size / 1000
    for unit in ("kB", "MB"):
        if amount < 999.5:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def count_text(number: int, noun: str) -> str:
    """A number and its noun: 1 path, 2 paths."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
