"""`bind`: carries the current run into a thread."""

import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, ParamSpec, TypeVar

from ...errors import StateValueError
from ..state.digest import value_digest
from .arguments_json import json_form
from .lanes import Lane, frame_here, lane_in, set_lane

P = ParamSpec("P")
R = TypeVar("R")


def bind(fn: Callable[P, R]) -> Callable[P, R]:
    """Carry the current run into a thread: `Thread(target=bind(work))`.

    The bound function may be called several times at once, as in `pool.map(bind(work), items)`. Each call has its own
    lane, identified by the arguments, so calls with different arguments may start in any order. Calls with equal
    arguments are numbered in the order of their starts; if the difference matters, bind the function once for each
    call.
    """
    context = copy_context()
    frame = frame_here()
    lanes = None if frame is None else _Lanes(lane_in(frame).child(frame))

    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        own: Context = context.copy()
        if lanes is not None:
            own.run(set_lane, lanes.of(args, kwargs))
        return own.run(fn, *args, **kwargs)

    return bound


class _Lanes:
    """The lanes of one bound function's calls.

    Their names look like `3`, `3+1` and, with arguments, `3:1f00aa42`.
    """

    def __init__(self, first: Lane) -> None:
        self._first = first
        self._calls: dict[str, int] = {}
        self._lock = threading.Lock()

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lane:
        """Return the lane of one more call with these arguments."""
        name = self._first.name
        if args or kwargs:
            try:
                form = json_form({"args": args, "kwargs": kwargs}, lambda name, value: None)
                name += f":{value_digest(form)[:8].decode()}"
            except StateValueError:
                pass  # an argument that contains itself has no digest: all such calls count as equal
        with self._lock:
            number = self._calls[name] = self._calls.get(name, -1) + 1
        return Lane(self._first.frame, f"{name}+{number}" if number else name)
