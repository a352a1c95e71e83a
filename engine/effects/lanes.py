"""Lanes: the tasks and threads inside one hook or call.

A lane is named by the order in which the code starts it. Two tasks may make equal requests. Each request is numbered
within its lane, so scheduling never decides which request receives which recorded outcome. A lane is named when its
task is created, by the lane that creates it, because there the order is the code's own:

    ""                  the hook or call itself
    "0"                 the first task or thread that it started
    "0.2"               the third one started by lane "0"
    "candidate 0.2|"    the hook, asked for candidate 2 of branch 0 while other candidates are asked beside it
    "candidate 0.2|1"   the second task that it started

The number of a request is its count in the lane, preceded by the lane's name if there is one: `0`, `1`, `"0.2/0"`. To
name each task at creation, `named_lanes` installs a task factory (asyncio) or an instrument (trio) while a run is live.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any
from weakref import WeakKeyDictionary

from ..current_frame import frame_variable


class Lane:
    """One task or thread in a frame.

    The frame itself is the lane of its hook or call (a subclass). There, `frame` is None: with a reference to itself,
    each frame would be left to the garbage collector.
    """

    __slots__ = ("counts", "frame", "name", "started")

    def __init__(self, frame: "Lane | None", name: str = "") -> None:
        self.frame = frame
        self.name = name
        self.counts: dict[str, int] = {}
        self.started = 0

    def number(self, what: str) -> int | str:
        """Count a request, and return its number among the lane's equal requests.

        The name of the lane, if it has one, is part of the number.
        """
        count = self.counts.get(what, 0)
        self.counts[what] = count + 1
        return f"{self.name}/{count}" if self.name else count

    def counted(self, what: str, n: int | str) -> None:
        """Continue counting requests of the digest `what` after `n`."""
        self.counts[what] = max(self.counts.get(what, 0), _count(n) + 1)

    def begin_at(self, what: str, n: int | str) -> None:
        """Set the number of the next request `what`."""
        self.counts[what] = _count(n)

    def child(self, frame: "Lane") -> "Lane":
        """Return the lane of the next task that this lane starts."""
        number, self.started = self.started, self.started + 1
        return Lane(frame, f"{started_in(self.name)}{number}")


def started_in(name: str) -> str:
    """Return the prefix of lanes started in the lane `name`."""
    return f"{name}." if name and name[-1] != "|" else name


def asked_as(name: str) -> str:
    """Return the candidate of a lane, such as `"candidate 0.2|"`, or `""`."""
    return name[: name.rfind("|") + 1]


def _count(n: int | str) -> int:
    return n if isinstance(n, int) else int(n.rpartition("/")[2])


def lane_name(n: int | str) -> str:
    """Return the lane in a number: `"0.2"` of `"0.2/5"`, `""` of `5`."""
    return "" if isinstance(n, int) else n.rpartition("/")[0]


def frame_here() -> "Lane | None":
    """Return the running frame, or None outside of hooks and calls."""
    frame = frame_variable.get()
    return frame if isinstance(frame, Lane) else None


_lane: ContextVar[Lane | None] = ContextVar("refold_lane", default=None)


def lane_in(frame: "Lane") -> Lane:
    """Return the running lane of `frame`."""
    lane = _lane.get()  # may be left over from an outer frame: each call's function runs in a frame of its own
    return lane if lane is not None and lane.frame is frame else frame


set_lane = _lane.set


class _Factory:
    """An asyncio task factory that gives each task its lane.

    `before` creates the tasks. `users` counts the live runs of the loop; the last one restores `before`.
    """

    def __init__(self, before: Any) -> None:
        self.before = before
        self.users = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        if options.get("context") is None and (lane := _starting()) is not None:
            context = copy_context()
            context.run(_lane.set, lane)
            options["context"] = context
        if self.before is not None:
            return self.before(loop, coro, **options)
        return asyncio.Task(coro, loop=loop, **options)


class _Instrument:
    """A trio instrument that gives each new task its lane.

    `users` counts the live runs of the loop.
    """

    def __init__(self) -> None:
        self.users = 0

    def task_spawned(self, task: Any) -> None:
        if (lane := _starting()) is not None:
            task.context.run(_lane.set, lane)


def _starting() -> Lane | None:
    """Return the lane of a task created here; None outside of hooks."""
    frame = frame_here()
    return None if frame is None else lane_in(frame).child(frame)


_instruments: WeakKeyDictionary[Any, _Instrument] = WeakKeyDictionary()


def named_lanes() -> Callable[[], None]:
    """Name the tasks of the running loop; return a function that stops.

    Naming goes on until each run of the loop has called its function.
    """
    return _on_asyncio() if _is_asyncio() else _on_trio()


def _is_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _on_asyncio() -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    before: Any = loop.get_task_factory()
    factory = before if isinstance(before, _Factory) else _Factory(before)
    if factory is not before:
        loop.set_task_factory(factory)
    factory.users += 1

    def leave() -> None:
        factory.users -= 1
        if not factory.users and loop.get_task_factory() is factory:
            loop.set_task_factory(factory.before)

    return leave


def _on_trio() -> Callable[[], None]:
    from trio.lowlevel import add_instrument, current_trio_token, remove_instrument

    token = current_trio_token()
    instrument = _instruments.get(token)
    if instrument is None:
        instrument = _instruments[token] = _Instrument()
        add_instrument(instrument)  # type: ignore[arg-type]
    instrument.users += 1

    def leave() -> None:
        instrument.users -= 1
        if not instrument.users:
            remove_instrument(instrument)  # type: ignore[arg-type]
            _instruments.pop(token, None)

    return leave
