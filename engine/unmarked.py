"""What a recorded text or value may have been, where secrets were taken out of it: each mark stands for any text."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

MARK = re.compile(r"<redacted:([^>]*)>")
MARKED = b"<redacted:"
Learn = Callable[[str, str], None]
"""Takes the name and the value of a secret that was found out."""


def _untold(name: str, value: str) -> None:
    """Learns nothing."""


@lru_cache(maxsize=256)
def _pattern(text: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """What fits a text with marks, a group for each of them, and the marks' names."""
    parts = MARK.split(text)
    pattern = "(.*?)".join(re.escape(part) for part in parts[::2])
    return re.compile(pattern, re.DOTALL), tuple(parts[1::2])


def text_fits(recorded: str, actual: str, learn: Learn = _untold) -> bool:
    """Whether a recorded text may have been this one; `learn` is told what then stood in place of each mark."""
    if "<redacted:" not in recorded:
        return recorded == actual
    pattern, names = _pattern(recorded)
    found = pattern.fullmatch(actual)
    if found is None:
        return False
    if "><redacted:" not in recorded:  # between two marks that touch, nobody can tell where one ends
        for name, value in zip(names, found.groups(), strict=True):
            if not MARK.search(value):
                learn(name, value)
    return True


def fits(recorded: Any, actual: Any, learn: Learn = _untold, *, ordered: bool = True) -> bool:
    """Whether a recorded JSON value may have been this one; the order of members counts where it is told to."""
    if isinstance(recorded, dict) and isinstance(actual, dict):
        if len(recorded) != len(actual):
            return False
        if recorded.keys() == actual.keys() and not (ordered and list(recorded) != list(actual)):
            return all(fits(recorded[name], actual[name], learn, ordered=ordered) for name in recorded)
        pairs = zip(recorded.items(), actual.items(), strict=True)
        return all(text_fits(a, c, learn) and fits(b, d, learn, ordered=ordered) for (a, b), (c, d) in pairs)
    if isinstance(recorded, list) and isinstance(actual, list):
        return len(recorded) == len(actual) and all(
            fits(a, b, learn, ordered=ordered) for a, b in zip(recorded, actual, strict=True)
        )
    if isinstance(recorded, str) and isinstance(actual, str):
        return text_fits(recorded, actual.encode("utf-8", "replace").decode(), learn)
    return type(recorded) is type(actual) and bool(recorded == actual)
