"""What a generator can know beside its arguments: the request's number in its run, and who listens to the pieces."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..within import Within
from .generation import Delta

Listener = Callable[[Delta], None]

_number: ContextVar[int | None] = ContextVar("refold_generation_number", default=None)
_listener: ContextVar[Listener | None] = ContextVar("refold_generation_listener", default=None)


def generation_number() -> int | None:
    """How many requests the run made before this one, where its asker said so (`generate(..., number=n)`)."""
    return _number.get()


def numbered(number: int | None) -> Within[int | None]:
    """Says which request of its run is made inside."""
    return Within(_number, number)


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
