"""What `dreadnode.app.env` tells of this machine."""

import sys
from typing import Any


def resolve_python_executable(*args: Any, **kwargs: Any) -> str:
    """Return the Python that runs refold, whatever is asked for."""
    return sys.executable
