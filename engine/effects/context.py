"""Where an effect is performed: the frame of the hook or call that is running, found through a context variable."""

import threading
from asyncio import events
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import EffectNotAllowed, NoRunError
from ..purity import NOWHERE, frame_variable
from .lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from ...traces import TraceWriter
    from .call import Call
    from .spec import EffectSpec
    from .tool_arguments import Signature


class Host(Protocol):
    """What a frame's effects are given to: a live run, which does them, or a recorded one, which serves them."""

    run_id: str
    seed: int
    path: str
    first_step: int
    """How many steps of other runs lead to this one's first state."""
    tools: "dict[str, tuple[Callable[..., Any], Signature, EffectSpec]]"
    """The tools that were called, with what is known of them."""

    @property
    def writer(self) -> "TraceWriter | None":
        """What writes the run's trace; None where a trace is served."""

    def begin(self, frame: "Frame", spec: "EffectSpec", args: dict[str, Any] | None, action: Any = None) -> Any:
        """Opens a call: journals its intent, or finds its recorded outcome."""

    async def turn(self, call: Any) -> None:
        """Waits until a recorded outcome's turn has come, so that outcomes arrive in their recorded order."""

    def turn_in_thread(self, call: Any) -> None:
        """`turn`, for sync code."""

    def emit(self, frame: "Frame", name: str, data: dict[str, Any]) -> None:
        """Writes an event."""

    def wall_time(self) -> float:
        """Seconds since the epoch."""


class Span(Protocol):
    """How long a hook (its frame) or a call goes on: what is made in it ends with it, and is refused afterwards."""

    over: bool
    open: "set[Call] | None"
    """The calls made in it that have not ended."""


class Frame(Lane):
    """One running hook or call: which step and phase it belongs to, and what identifies the next effect in it.

    `prefix` is the match (digest and number) of the enclosing call, `parent` its intent. A hook that is asked several
    times at once has a prefix as well, which names its lane. The frame is the lane that its hook or call runs in, and,
    where `span` is not given, what the calls made in it end with.
    """

    __slots__ = ("_rngs", "call", "host", "open", "over", "parent", "phase", "prefix", "step", "within")

    def __init__(
        self,
        host: Host,
        step: int,
        phase: str,
        parent: int | None = None,
        prefix: bytes = b"",
        call: Any = None,
        span: Span | None = None,
        lane: str | None = None,
    ) -> None:
        if lane is None:
            lane = "" if call is not None or not prefix else prefix.decode()
        self.frame = None
        self.name = lane
        self.counts = {}
        self.started = 0
        self.host = host
        self.step = step
        self.phase = phase
        self.parent = parent
        self.prefix = prefix
        self.call = call
        self.over = False
        self.open: set[Call] | None = None
        self.within = span
        """What the calls made here end with; None for the frame itself, as a circle would wait for the collector."""
        self._rngs: dict[tuple[str, str], Random] | None = None

    @property
    def span(self) -> Span:
        """What the calls made here end with."""
        return self if self.within is None else self.within

    @property
    def rngs(self) -> "dict[tuple[str, str], Random]":
        """The streams of random numbers that were asked for, by lane and name."""
        if self._rngs is None:
            self._rngs = {}
        return self._rngs

    def derive(self, what: str) -> bytes:
        """16 bytes that depend on the seed, the fork path, this place and `what` alone."""
        host = self.host
        place = f"{host.seed}|{host.path}|{host.first_step + self.step}|{self.phase}|{what}"
        return blake2b(self.prefix + place.encode(), digest_size=16).digest()


class _Outside:
    """Stands for what a run calls that is no part of it: effects just run there, in whatever thread."""


OUTSIDE = _Outside()
_live_runs = 0
_live_lock = threading.Lock()


@contextmanager
def counted_live() -> "Iterator[None]":
    """Counts a run as live in this process, so that effects from threads that lost their run are found out."""
    global _live_runs
    with _live_lock:
        _live_runs += 1
    try:
        yield
    finally:
        with _live_lock:
            _live_runs -= 1


def frame_or_none() -> Frame | None:
    """The running frame; None outside of any run.

    Raises EffectNotAllowed inside reduce() and stop criteria, NoRunError in a bare thread while runs are live.
    """
    frame = frame_variable.get()
    if frame is None:
        if _live_runs and threading.current_thread() is not threading.main_thread() and not in_event_loop():
            raise NoRunError(
                "this thread does not know its run; start it with bind(fn), which carries the run along: "
                "threading.Thread(target=bind(work))"
            )
        return None
    if frame is OUTSIDE:
        return None
    if frame is NOWHERE:
        raise EffectNotAllowed(
            "an effect was performed inside reduce() or a stop criterion, which must be pure; "
            "perform it in decide() or act() and pass its result on"
        )
    return frame  # type: ignore[no-any-return]


def in_event_loop() -> bool:
    """Whether this code runs in an event loop, which must not be blocked."""
    if events._get_running_loop() is not None:
        return True
    try:
        from trio.lowlevel import in_trio_run
    except ImportError:
        return False
    return in_trio_run()
