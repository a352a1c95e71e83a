"""Search of a text for a regular expression; run by a child process, as backtracking can take for ever."""

import re
from typing import Any


def answer(request: dict[str, Any]) -> bool:
    """Return whether `pattern`, compiled with `flags`, is found in `text`."""
    return re.search(request["pattern"], request["text"], request["flags"]) is not None
