"""Re-entrant context managers: nested entries share the first one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from anyio.lowlevel import EventLoopToken, current_token

from ....traces.errors import UsageError

ASYNC = ("__aenter__", "__aexit__")
SYNC = ("__enter__", "__exit__")
_claiming = threading.Lock()
"""Held while an event loop claims an entry; two threads may do so at once."""


class OtherEventLoopError(UsageError, RuntimeError):
    """A toolset was entered while another event loop uses it.

    What a toolset opens, such as a connection, belongs to the event loop that opened it.
    """

    def __init__(self, owner: Any) -> None:
        name = type(owner).__name__
        super().__init__(
            f"{name} is in use in another event loop, whose thread has entered it; what it opened works only there. "
            f"Give each thread its own {name}, or run the agents in one event loop"
        )


class _Claim:
    """An event loop's use of an Entry.

    `users` counts the entries and exits in progress.
    """

    def __init__(self, loop: EventLoopToken) -> None:
        self.loop = loop
        self.lock = anyio.Lock(fast_acquire=True)  # otherwise a cancellation could end an exit before it starts
        self.users = 0


class EntryCount:
    """The number of entries of an object, and the first entry's result.

    An async context manager belongs to the event loop of its first entry, until its last exit. A copy has no entries.
    """

    def __init__(self) -> None:
        self.count = 0
        self.handle: Any = None
        self._claim: _Claim | None = None

    def __reduce__(self) -> tuple[type["EntryCount"], tuple[()]]:
        return EntryCount, ()

    @asynccontextmanager
    async def turn(self, owner: Any, *, is_exit: bool = False) -> AsyncIterator[None]:
        """Hold the lock of entries and exits.

        Raises OtherEventLoopError if another event loop has entered `owner` or is entering it.
        """
        claim = self._claimed(owner)
        try:
            # An exit takes place in a cancelled scope, too. It does not wait long: while an exit is due, whoever holds
            # the lock only counts.
            with anyio.CancelScope(shield=is_exit):
                await claim.lock.acquire()
            try:
                yield
            finally:
                claim.lock.release()
        finally:
            with _claiming:
                claim.users -= 1

    def _claimed(self, owner: Any) -> _Claim:
        """Return the claim of the current event loop, with one more user."""
        loop = current_token()
        with _claiming:
            claim = self._claim
            if claim is None or claim.loop != loop:
                if claim is not None and (self.count or claim.users) and not _has_ended(claim.loop):
                    raise OtherEventLoopError(owner)
                self.count, self._claim = 0, (claim := _Claim(loop))
            claim.users += 1
            return claim

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
        self.count, self.handle = 0, None
        return True


def make_reentrant(cls: type, entry_of: Callable[[Any], EntryCount]) -> None:
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


def _wrap_async(cls: type, entry_of: Callable[[Any], EntryCount]) -> None:
    enter, leave = cls.__aenter__, cls.__aexit__  # type: ignore[attr-defined]

    async def __aenter__(self: Any) -> Any:
        if type(self).__aenter__ is not __aenter__:  # a subclass's own method calls this one, and counts
            return await enter(self)
        entry = entry_of(self)
        async with entry.turn(self):
            return entry.entered(None if entry.count else await enter(self), self)

    async def __aexit__(self: Any, *error: Any) -> Any:
        if type(self).__aexit__ is not __aexit__:
            return await leave(self, *error)
        entry = entry_of(self)
        async with entry.turn(self, is_exit=True):
            return await leave(self, *error) if entry.left() else None

    _set(cls, __aenter__, __aexit__)


def _wrap_sync(cls: type, entry_of: Callable[[Any], EntryCount]) -> None:
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


def _has_ended(loop: EventLoopToken) -> bool:
    """Return whether an event loop has ended, with or without exits."""
    if isinstance(loop.native_token, asyncio.AbstractEventLoop):
        return loop.native_token.is_closed()
    import trio

    try:
        cast(trio.lowlevel.TrioToken, loop.native_token).run_sync_soon(int)
    except trio.RunFinishedError:
        return True
    return False
