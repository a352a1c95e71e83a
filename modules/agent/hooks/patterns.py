"""Whether a text is what a pattern looks for."""

import re
from collections.abc import Callable
from re import Pattern

from ....tasks.patterns import is_found


def matcher(
    pattern: str | Pattern[str], *, case_sensitive: bool = False, exact: bool = False, regex: bool = False
) -> Callable[[str], bool]:
    """Return a function that says whether a text matches.

    A compiled pattern, or with `regex` a text, is searched for as a regular expression; a compiled one keeps its own
    flags. With `exact` the whole text must be the pattern, else it must contain it. Raises ValueError for a text that
    is no regular expression.

    Regular expressions are searched for in a child process: the function raises PatternTimeoutError if that takes too
    long, as it may with nested repetition.
    """
    if isinstance(pattern, Pattern):
        compiled = pattern
    elif regex:
        try:
            compiled = re.compile(pattern, 0 if case_sensitive else re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
    else:
        return _plain(pattern, case_sensitive, exact)
    return lambda text: is_found(compiled, text)


def _plain(pattern: str, case_sensitive: bool, exact: bool) -> Callable[[str], bool]:
    def same(text: str) -> str:
        return text if case_sensitive else text.lower()

    wanted = same(pattern)
    return (lambda text: same(text) == wanted) if exact else (lambda text: wanted in same(text))
