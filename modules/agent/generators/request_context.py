"""A request's context: its number in the run, and the pieces' listener."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .generation import Delta

Listener = Callable[[Delta], None]

request_number: ContextVar[int | None] = ContextVar("refold_generation_number", default=None)
"""The number of the current request in its run."""

_listener: ContextVar[Listener | None] = ContextVar("refold_generation_listener", default=None)


def generation_number() -> int | None:
    """Return the number of the run's earlier requests.

    Returns None unless the caller passed it (`generate(..., number=n)`).
    """
    return request_number.get()


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Pass the pieces of every answer generated inside to `listener`.

    Pieces are for display: they are not journaled, and after an error the pieces of the failed attempt are void. A
    listener does not change the answer.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Listener | None:
    """Return the current listener, or None."""
    return _listener.get()
