"""One sync call in the thread that makes it."""

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

from . import forked_processes
from .forked_processes import end_child

RUNNING: dict[int, Context] = {}
"""The context of the job in each worker thread that is at work, by the thread's ident."""
MOST = 500
"""The highest number of jobs at work at a time.

Each job takes a thread, and many systems refuse some thousand threads.
"""


def outcome_of(fn: Callable[..., Any], kwargs: dict[str, Any], context: Context) -> tuple[Any, BaseException | None]:
    """Call `fn(**kwargs)` in `context`; return its value and error.

    The thread is in RUNNING meanwhile. A process that `fn` has forked ends here.
    """
    value, error, began, ident = None, None, forked_processes.number, threading.get_ident()
    RUNNING[ident] = context
    try:
        value = context.run(fn, **kwargs)
    except BaseException as raised:  # noqa: BLE001 - it is raised again where the call is awaited
        error = awaitable(raised)
    if forked_processes.number != began:
        end_child(error)
    RUNNING.pop(ident, None)
    return value, error


def awaitable(error: BaseException) -> BaseException:
    """Return an error as code that awaits the call gets it.

    Thrown into a coroutine, StopIteration and GeneratorExit would mean something else.
    """
    if not isinstance(error, StopIteration | GeneratorExit):
        return error
    told = RuntimeError(f"{type(error).__name__} left a sync function")
    told.__cause__ = error
    return told
