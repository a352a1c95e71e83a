"""A check that an awk program only computes and prints.

The program is read word by word, and an unknown word is doubted.
"""

import re

from .word_lists import words_of

_TOKEN = re.compile(
    r"(?P<blank>[ \t\n]+|\#[^\n]*)|(?P<text>\"(?:[^\"\\\n]|\\[^\n])*\")|(?P<regex>/(?:[^/\\\n]|\\[^\n])+/)|"
    r"(?P<number>[0-9]+\.?[0-9]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<write>>>?(?!=))|"
    r"(?P<other>\|\||&&|[><=!+\-*/%^]=|\+\+|--|[<!~=+\-*/%^?:,;(){}\[\]$])"
)
_FUNCTIONS = words_of(
    """
    length substr index split gsub sub match tolower toupper sprintf int sqrt exp log sin cos atan2 rand srand
    gensub strftime systime print printf if while for in exit next return delete do else BEGIN END asort asorti
    and or xor lshift rshift strtonum patsplit mktime
    """
)
"""Functions that compute, and keywords; both may precede a bracket."""
_MOST = 10_000


def doubt_of_awk(code: str) -> tuple[str | None, bool]:
    """Return why an awk program may run others, and whether it writes.

    The reason is None if the program surely runs no other program. The second value is True if it may write files.

    awk runs programs by `system`, a pipe, `getline`, and calls of variables' names. A `/` that may divide counts as the
    start of a regular expression only if the rest of the line has no `|`.
    """
    if len(code) > _MOST:
        return "it is too long", True
    at, writes, printing, depth = 0, False, False, 0
    while at < len(code):
        found = _TOKEN.match(code, at)
        if found is None:
            return f"it holds {code[at]!r}", True
        kind, token = found.lastgroup, found[0]
        if kind == "regex" and re.search(r"[|@`]|system|getline", token):
            return f"it holds {token}", True
        if kind == "name":
            following = code[found.end() : found.end() + 1]
            if token in ("getline", "system", "function", "func", "close", "fflush"):
                return f"it uses {token}", True
            if following == "(" and token not in _FUNCTIONS:
                return f"it calls {token}", True
            printing = printing or token in ("print", "printf")
        elif kind == "write":
            writes = writes or (printing and depth == 0)
        elif token in ("(", ")"):
            depth += 1 if token == "(" else -1
        elif token in (";", "{", "}"):
            printing, depth = False, 0
        if kind == "blank" and "\n" in token:
            printing = False
        at = found.end()
    return None, writes
