"""A child that a hook or tool has forked: it ends where the function ends that forked it, and is no second run."""

import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

_forks = 0


def forks() -> int:
    """Return how many forks lead to this process from the one that has imported this."""
    return _forks


def _count() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)


def end_child(error: BaseException | None) -> NoReturn:
    """End this process as its function ended, and without the cleaning up that is its parent's.

    The exit code is that of a SystemExit, 0 where the function returned, and else 1 with the traceback told.
    """
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    elif error is not None:
        code = 1
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code & 0xFF)
