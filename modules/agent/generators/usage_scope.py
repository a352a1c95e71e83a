"""What the generations inside of something have used together, such as those of a tool, or of a hook."""

from contextvars import ContextVar

from ..chat.usage import Usage


class Spending:
    """The usage of what went on inside of a `with`; it counts for whatever this is inside of as well."""

    __slots__ = ("_outer", "_token", "_usages")

    def __init__(self) -> None:
        self._outer = _inside.get()
        self._usages: list[Usage] = []

    def __enter__(self) -> "Spending":
        self._token = _inside.set(self)
        return self

    def __exit__(self, *raised: object) -> None:
        _inside.reset(self._token)

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


def spending() -> Spending:
    """Counts the usage of all generations inside."""
    return Spending()


def spent(usage: Usage | None) -> None:
    """Counts usage for whatever this is inside of."""
    counted = _inside.get()
    if counted is not None and usage is not None:
        counted.add(usage)
