"""The facts about this machine in `dreadnode.app.env`."""

import sys
from typing import Any


def resolve_python_executable(*args: Any, **kwargs: Any) -> str:
    """Return the Python that runs refold, whatever the arguments."""
    return sys.executable
