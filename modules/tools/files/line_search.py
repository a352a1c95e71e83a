"""Which lines of texts a regular expression matches; run by a child process, as the pattern is the model's."""

import re
from typing import Any

_compiled: list[re.Pattern[str]] = []


def answer(request: dict[str, Any]) -> Any:
    """Compiles a `pattern`, once: what is wrong with it, or None. Then searches `texts`.

    Of each text it gives the number of lines that match, and the first `most` of them, counted from 0.
    """
    if "pattern" in request:
        try:
            _compiled.append(re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0))
        except (re.error, RecursionError, OverflowError) as error:
            return str(error)
        return None
    return [_hits(text, request["most"]) for text in request["texts"]]


def _hits(text: str, most: int) -> tuple[int, list[int]]:
    search = _compiled[0].search
    found = [number for number, line in enumerate(lines_of(text)) if search(line)]
    return len(found), found[:most]


def lines_of(text: str) -> list[str]:
    """The lines of a text; the end of the last one begins no other."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
