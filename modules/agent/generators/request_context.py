"""What a generator can know beside its arguments: the request's number in its run, and who listens to the pieces."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .generation import Delta

Listener = Callable[[Delta], None]

request_number: ContextVar[int | None] = ContextVar("refold_generation_number", default=None)
"""The number of the request that is made inside, in its run."""

_listener: ContextVar[Listener | None] = ContextVar("refold_generation_listener", default=None)


def generation_number() -> int | None:
    """How many requests the run made before this one, where its asker said so (`generate(..., number=n)`)."""
    return request_number.get()


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Shows the pieces of every answer that is generated inside to `listener`, as they come.

    Pieces are for showing: they are not journaled, a replay has none, and after an error those of the failed attempt
    are void. What is generated is the same whether somebody listens or not.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Listener | None:
    """Who listens here, if anybody."""
    return _listener.get()
