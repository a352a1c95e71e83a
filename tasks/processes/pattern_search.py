"""Searches a text for a regular expression, in a child process.

Backtracking can take for ever, and a child process can be killed.
"""

import re
from typing import Any


def answer(request: dict[str, Any]) -> bool:
    """Return whether `pattern`, compiled with `flags`, is found in `text`."""
    return re.search(request["pattern"], request["text"], request["flags"]) is not None
