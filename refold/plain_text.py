"""Values as JSON and durations as words, safe to print."""

import json
from typing import Any

from .printable import printable_json


def value_text(value: Any, *, indent: int | None = None) -> str:
    """Return a JSON value as text; without `indent`, in one line."""
    return printable_json(json.dumps(value, ensure_ascii=False, indent=indent))


def seconds_text(seconds: float) -> str:
    """Return a duration in words.

    The forms are 12 ms, 3.4 s, 2 min 05 s and 1 h 05 min.
    """
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
