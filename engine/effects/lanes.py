"""Who asks, inside one hook or call: each task and thread that it starts has a lane, named by the order of starting.

Equal requests are told apart by the lane that makes them and by their number there, so that which of them is given
which outcome never depends on scheduling. A task is named when it is created, in the lane that creates it: there the
order is the code's own. `0` is the first task that a hook started, `0.2` the third that this one started.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from ..purity import frame_variable

if TYPE_CHECKING:
    from .context import Frame


class Lane:
    """One task or thread in a frame; the frame itself is that of its hook or call, named `""`.

    `frame` is None for that one: a circle would leave each frame to the garbage collector.
    """

    __slots__ = ("counts", "frame", "name", "started")

    def __init__(self, frame: "Frame | None", name: str = "") -> None:
        self.frame = frame
        self.name = name
        self.counts: dict[str, int] = {}
        self.started = 0

    def number(self, what: str) -> int | str:
        """The number of a request among the equal ones of this lane; with the lane's name, where it has one."""
        count = self.counts.get(what, 0)
        self.counts[what] = count + 1
        return f"{self.name}/{count}" if self.name else count

    def counted(self, what: str, n: int | str) -> None:
        """Counts on from the number that a request has had in the trace, where it was known under another digest."""
        self.counts[what] = max(self.counts.get(what, 0), _count(n) + 1)

    def begin_at(self, what: str, n: int | str) -> None:
        """Gives this number to the next such request."""
        self.counts[what] = _count(n)

    def child(self, frame: "Frame") -> "Lane":
        """The lane of the next task or thread that is started in this one, which is a lane of `frame`."""
        number, self.started = self.started, self.started + 1
        return Lane(frame, f"{started_in(self.name)}{number}")


def started_in(name: str) -> str:
    """How the names of the lanes begin that a lane starts."""
    return f"{name}." if name and name[-1] != "|" else name


def asked_as(name: str) -> str:
    """Which one of several hooks asked at once a lane belongs to: `"candidate 0.2|"`, say; `""` for all others."""
    return name[: name.rfind("|") + 1]


def _count(n: int | str) -> int:
    return n if isinstance(n, int) else int(n.rpartition("/")[2])


def lane_name(n: int | str) -> str:
    """The lane that a recorded number names."""
    return "" if isinstance(n, int) else n.rpartition("/")[0]


def frame_here() -> "Frame | None":
    """The frame that runs now, if one does."""
    frame = frame_variable.get()
    return cast("Frame", frame) if isinstance(frame, Lane) else None


_lane: ContextVar[Lane | None] = ContextVar("refold_lane", default=None)


def lane_in(frame: "Frame") -> Lane:
    """The lane that runs now, in a frame."""
    lane = _lane.get()
    return lane if lane is not None and lane.frame is frame else frame


set_lane = _lane.set


class _Factory:
    """Makes a loop's tasks as it made them before, each with its lane, while `users` runs are live there."""

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
    """Tells trio's new tasks their lanes."""

    def __init__(self) -> None:
        self.users = 0

    def task_spawned(self, task: Any) -> None:
        if (lane := _starting()) is not None:
            task.context.run(_lane.set, lane)


def _starting() -> Lane | None:
    """The lane of a task that is being created here; None outside of hooks and calls."""
    frame = frame_here()
    return None if frame is None else lane_in(frame).child(frame)


_instruments: WeakKeyDictionary[Any, _Instrument] = WeakKeyDictionary()


def named_lanes() -> Callable[[], None]:
    """Names the tasks that are created in the running event loop from now on; gives what ends that.

    It goes on for as long as any run is live there.
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
