"""Stops reading for somebody who no longer waits.

Reading a long trace takes seconds, and who asked may have gone. A server runs each question within `while_wanted`; what
reads many bytes calls `check_wanted` now and then. Outside of such a block, everything is wanted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_gone: ContextVar[Callable[[], bool] | None] = ContextVar("refold_reader_gone", default=None)


class NotWantedError(BaseException):
    """Nobody waits for the answer any more.

    It is not an `Exception`, like a cancellation: code that handles errors of reading must not take it for one.
    """


@contextmanager
def while_wanted(gone: Callable[[], bool]) -> Iterator[None]:
    """Stop what is read within the block once `gone` returns True."""
    before = _gone.set(gone)
    try:
        yield
    finally:
        _gone.reset(before)


def check_wanted() -> None:
    """Raise `NotWantedError` if nobody waits any more."""
    gone = _gone.get()
    if gone is not None and gone():
        raise NotWantedError
