"""A request's context: its number in the run, and the pieces' listener."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .generation import Delta

Listener = Callable[[Delta], None]

_context: ContextVar[tuple[int | None, Listener | None]] = ContextVar("refold_generation", default=(None, None))
"""The number of the current request in its run, and the listener."""


def generation_number() -> int | None:
    """Return the number of the run's earlier requests.

    Returns None unless the caller passed it (`generate(..., number=n)`).
    """
    return _context.get()[0]


@contextmanager
def numbered(number: int | None) -> Iterator[None]:
    """Make a request inside, with this number."""
    token = _context.set((number, _context.get()[1]))
    try:
        yield
    finally:
        _context.reset(token)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Pass the pieces of every answer generated inside to `listener`.

    Pieces are for display: they are not journaled, and after an error the pieces of the failed attempt are void. A
    listener does not change the answer.
    """
    token = _context.set((_context.get()[0], listener))
    try:
        yield
    finally:
        _context.reset(token)


def listener() -> Listener | None:
    """Return the current listener, or None."""
    return _context.get()[1]
