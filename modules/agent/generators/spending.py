"""What the generations inside of something have used together, such as those of a tool, or of a hook."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..usage import Usage


class Spending:
    """The usage of what went on inside; it counts for whatever this is inside of as well."""

    __slots__ = ("_outer", "_usages")

    def __init__(self, outer: "Spending | None") -> None:
        self._outer = outer
        self._usages: list[Usage] = []

    def add(self, usage: Usage) -> None:
        """Counts usage; from whichever thread."""
        self._usages.append(usage)
        if self._outer is not None:
            self._outer.add(usage)

    @property
    def usage(self) -> Usage | None:
        """All of it together; None where there was none."""
        return Usage.total(self._usages) if self._usages else None


_inside: ContextVar[Spending | None] = ContextVar("refold_spending", default=None)


@contextmanager
def spending() -> Iterator[Spending]:
    """Counts the usage of all generations inside."""
    counted = Spending(_inside.get())
    token = _inside.set(counted)
    try:
        yield counted
    finally:
        _inside.reset(token)


def spent(usage: Usage | None) -> None:
    """Counts usage for whatever this is inside of."""
    counted = _inside.get()
    if counted is not None and usage is not None:
        counted.add(usage)
