"""The frame of the running hook or call, in one context variable.

`perform` takes no run as an argument: it reads `frame_variable`, which holds one of four values:

    a Frame   inside a hook, effect or tool of a run: the frame names the host, step, phase and enclosing call
    None      outside of any run: the function just runs, and nothing is recorded
    OUTSIDE   in code that a run calls but that is not part of the run, such as `on_wait`: as None
    NOWHERE   inside `reduce` and stop criteria, which must be pure: an effect raises EffectNotAllowedError

Context variables do not cross into threads that the user starts. Such a thread looks like one outside of any run. So
while a run is live, an effect in a thread without the variable raises NoRunError, unless the thread runs an event loop.
"""

import threading
from asyncio import events
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import EffectNotAllowedError, NoRunError
from ..current_frame import NOWHERE, frame_variable
from .lanes import Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from ...traces.file.writer import TraceWriter
    from .spec import EffectSpec


class Host(Protocol):
    """The run behind a frame.

    A live run performs the frame's effects; a recorded run serves them from its trace.
    """

    run_id: str
    seed: int
    path: str
    first_step: int
    """How many steps of other runs lead to the run's first state (in a fork)."""
    tools: "dict[str, tuple[Callable[..., Any], EffectSpec]]"
    """The tools called so far."""

    @property
    def writer(self) -> "TraceWriter | None":
        """The writer of the run's trace, or None for a recorded run."""

    def begin(self, frame: "Frame", spec: "EffectSpec", args: dict[str, Any] | None, action: Any = None) -> Any:
        """Prepare a call: look up its outcome, or prepare its intent."""

    async def turn(self, call: Any) -> None:
        """Wait for the turn of an outcome, in the recorded order."""

    def turn_in_thread(self, call: Any) -> None:
        """Wait for the turn of a recorded outcome, in sync code."""

    def emit(self, frame: "Frame", name: str, data: dict[str, Any]) -> None:
        """Write an event."""

    def wall_time(self) -> float:
        """Return seconds since the epoch."""


class OpenCall(Protocol):
    """A call without an outcome, as its enclosing span sees it."""

    run: Any
    when_left: "Callable[[], Any] | None"

    def cancelled(self, why: str) -> None:
        """Record that the call was cancelled."""


class Span(Protocol):
    """The lifetime of a hook (its frame) or of a call.

    Calls made in a span end with it; later calls are refused.
    """

    over: bool
    open: "set[OpenCall] | None"
    """The calls made in the span that have not ended; None before the first."""


class Frame(Lane):
    """One running hook or call, which identifies the effects inside.

    `call` is the call whose function runs here, `parent` the number of its intent, and `prefix` its match (digest and
    number); in a hook they are None, None and empty. A hook that is asked for several candidates at once has a prefix
    too, which names its lane. The frame is also the lane of its hook or call, and, without a `span`, its span.
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
        self.open: set[OpenCall] | None = None
        self.within = span
        """The span; None if the frame is its own span, as a reference to itself would need the garbage collector."""
        self._rngs: dict[tuple[str, str], Random] | None = None

    @property
    def span(self) -> Span:
        """The hook or call with which the calls made here end."""
        return self if self.within is None else self.within

    @property
    def rngs(self) -> "dict[tuple[str, str], Random]":
        """The random streams in use, by lane and name."""
        if self._rngs is None:
            self._rngs = {}
        return self._rngs

    def derive(self, what: str) -> bytes:
        """Return 16 bytes that are the same in every attempt.

        They depend on the seed, the fork path, the place of this frame and `what`.
        """
        host = self.host
        place = f"{host.seed}|{host.path}|{host.first_step + self.step}|{self.phase}|{what}"
        return blake2b(self.prefix + place.encode(), digest_size=16).digest()


def frame_inside(call: Any) -> Frame:
    """Return the frame of a call's function, which records its effects."""
    frame, (digest, n) = call.frame, call.match
    return Frame(frame.host, frame.step, frame.phase, call.intent, f"{digest}.{n}|".encode(), call, call)


class _Outside:
    """The context of code that a run calls but that is outside.

    Functions just run there, in any thread.
    """


OUTSIDE = _Outside()
_live_runs = 0
_live_lock = threading.Lock()


@contextmanager
def counted_live() -> "Iterator[None]":
    """Count a run as live in this process.

    While runs are live, `frame_or_none` detects threads that lost their run.
    """
    global _live_runs
    with _live_lock:
        _live_runs += 1
    try:
        yield
    finally:
        with _live_lock:
            _live_runs -= 1


def frame_or_none() -> Frame | None:
    """Return the running frame, or None outside of any run.

    Raises EffectNotAllowedError inside `reduce` and stop criteria, and NoRunError in a thread without a frame (and
    without an event loop) while runs are live.
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
        raise EffectNotAllowedError(
            "an effect was performed inside reduce() or a stop criterion, which must be pure; "
            "perform it in decide() or act() and pass its result on"
        )
    return frame  # type: ignore[no-any-return]


def in_event_loop() -> bool:
    """Return whether this code runs in an event loop."""
    if events._get_running_loop() is not None:
        return True
    try:
        from trio.lowlevel import in_trio_run
    except ImportError:
        return False
    return in_trio_run()
