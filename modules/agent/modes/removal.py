"""Removal of calls, and of wrappers left empty, from a text."""

import re
from collections.abc import Iterable

_FENCE = "```"


def cut(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text without the spans.

    The spans are in order and do not touch. Brackets and code fences that hold only spans are removed with them, and
    the result is stripped. Without spans, the text is returned unchanged.
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
