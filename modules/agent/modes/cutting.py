"""Cuts calls out of the text around them, and what then stands there for nothing."""

import re
from collections.abc import Iterable

_FENCE = "```"


def cut(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text without the spans.

    They are in order and do not touch. Without any it is the text itself.

    Brackets around nothing but spans go with them, and so do code fences. What is left has no blanks at its ends.
    """
    found = list(spans)
    if not found:
        return text
    mark = next(c for c in map(chr, range(0xE000, 0xF8FF)) if c not in text)
    pieces, at = [], 0
    for start, end in found:
        pieces += [text[at:start], mark]
        at = end
    marked = "".join([*pieces, text[at:]])
    marked = re.sub(rf"\[\s*{mark}(?:[\s,]*{mark})*[\s,]*\]", mark, marked)
    marked = re.sub(rf"{_FENCE}[\w-]*\s*{mark}(?:[\s,]*{mark})*\s*{_FENCE}", mark, marked)
    return marked.replace(mark, "").strip()
