"""Re-entrant context managers: nested entries share the first one."""

from collections.abc import Callable
from typing import Any

import anyio

ASYNC = ("__aenter__", "__aexit__")
SYNC = ("__enter__", "__exit__")


class Entry:
    """The number of entries of an object, and the first entry's result.

    An Entry serves one event loop at a time.
    """

    def __init__(self) -> None:
        self.count = 0
        self.handle: Any = None
        self.lock: anyio.Lock | None = None

    def turn(self) -> anyio.Lock:
        """Return the lock that entries and exits hold."""
        if self.lock is None:
            self.lock = anyio.Lock()
        return self.lock

    def entered(self, handle: Any, owner: Any) -> Any:
        """Count an entry and return the first entry's result.

        If that result was None, return the object itself.
        """
        self.count += 1
        if self.count == 1:
            self.handle = owner if handle is None else handle
        return self.handle

    def left(self) -> bool:
        """Count an exit and return whether it was the last."""
        self.count -= 1
        if self.count > 0:
            return False
        self.count, self.handle, self.lock = 0, None, None
        return True


def make_reentrant(cls: type, entry_of: Callable[[Any], Entry]) -> None:
    """Make the context manager that a class defines re-entrant.

    A sync one then also works in `async with`. Raises TypeError for a class that defines half of a pair, or both an
    async and a sync pair.
    """
    defined = [name for name in (*ASYNC, *SYNC) if name in cls.__dict__]
    if not defined:
        return
    pairs = [pair for pair in (ASYNC, SYNC) if any(name in defined for name in pair)]
    if len(pairs) == 2:
        raise TypeError(
            f"{cls.__name__} defines {' and '.join(defined)}: a toolset is either an async or a sync context manager"
        )
    missing = [name for name in pairs[0] if not hasattr(cls, name)]
    if missing:
        raise TypeError(f"{cls.__name__} defines {defined[0]} without {missing[0]}; both are needed")
    if pairs[0] is ASYNC:
        _wrap_async(cls, entry_of)
    else:
        _wrap_sync(cls, entry_of)


def _wrap_async(cls: type, entry_of: Callable[[Any], Entry]) -> None:
    enter, leave = cls.__aenter__, cls.__aexit__  # type: ignore[attr-defined]

    async def __aenter__(self: Any) -> Any:
        if type(self).__aenter__ is not __aenter__:  # a subclass's own method calls this one, and counts
            return await enter(self)
        entry = entry_of(self)
        async with entry.turn():
            return entry.entered(None if entry.count else await enter(self), self)

    async def __aexit__(self: Any, *error: Any) -> Any:
        if type(self).__aexit__ is not __aexit__:
            return await leave(self, *error)
        entry = entry_of(self)
        async with entry.turn():
            return await leave(self, *error) if entry.left() else None

    _set(cls, __aenter__, __aexit__)


def _wrap_sync(cls: type, entry_of: Callable[[Any], Entry]) -> None:
    enter, leave = cls.__enter__, cls.__exit__  # type: ignore[attr-defined]

    def __enter__(self: Any) -> Any:
        if type(self).__enter__ is not __enter__:
            return enter(self)
        entry = entry_of(self)
        return entry.entered(None if entry.count else enter(self), self)

    def __exit__(self: Any, *error: Any) -> Any:
        if type(self).__exit__ is not __exit__:
            return leave(self, *error)
        return leave(self, *error) if entry_of(self).left() else None

    async def __aenter__(self: Any) -> Any:
        return type(self).__enter__(self)

    async def __aexit__(self: Any, *error: Any) -> Any:
        return type(self).__exit__(self, *error)

    _set(cls, __enter__, __exit__, __aenter__, __aexit__)


def _set(cls: type, *functions: Callable[..., Any]) -> None:
    for function in functions:
        setattr(cls, function.__name__, function)
