"""The usage of all generations inside a block."""

from contextvars import ContextVar

from .usage import Usage


class Spending:
    """Collects usage inside a `with` block, and adds it to outer blocks."""

    __slots__ = ("_outer", "_token", "_usages")

    def __init__(self, outer: "Spending | None") -> None:
        self._outer = outer
        self._usages: list[Usage] = []

    def __enter__(self) -> "Spending":
        self._token = _inside.set(self)
        return self

    def __exit__(self, *raised: object) -> None:
        _inside.reset(self._token)

    def add(self, usage: Usage) -> None:
        """Add usage; safe in any thread."""
        self._usages.append(usage)
        if self._outer is not None:
            self._outer.add(usage)

    @property
    def usage(self) -> Usage | None:
        """The total usage; None if there was none."""
        return Usage.total(self._usages) if self._usages else None


_inside: ContextVar[Spending | None] = ContextVar("refold_spending", default=None)


def spending(*, alone: bool = False) -> Spending:
    """Return a block that collects the usage of all generations inside.

    With `alone`, it adds nothing to outer blocks.
    """
    return Spending(None if alone else _inside.get())


def spent(usage: Usage | None) -> None:
    """Add usage to the enclosing block, if there is one."""
    counted = _inside.get()
    if counted is not None and usage is not None:
        counted.add(usage)
