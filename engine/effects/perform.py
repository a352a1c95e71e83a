"""The functions that hooks and tools call to touch the world."""

import asyncio
import functools
import inspect
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, cast, overload

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from ...errors import EngineUsageError, NoRunError, RunAbortedError
from ...traces import Follower
from ..concurrency import forks
from ..concurrency.cancellation import cancel_requests, is_cancelled, own_task, stray, withdraw
from ..concurrency.forks import end_child
from ..concurrency.threads import in_thread, waits_in_thread
from ..purity import frame_variable, reset_frame, set_frame
from .call import Call, CallInfo, replayed, typed
from .context import OUTSIDE, Frame, frame_inside, frame_or_none, in_event_loop
from .lanes import lane_in
from .spec import EffectSpec, Marks, effect, is_async, spec_as, spec_of
from .usage import Usage

P = ParamSpec("P")
R = TypeVar("R")

_POLL_SECONDS = 0.005
"""How often, in seconds, a call that waits for tokens tries to reserve them again.

Tokens are released in any thread and by any run of the family, without a signal. The value is not measured: it is far
below the seconds of the model calls for which such a call waits.
"""
_CUT_OFF = "the run was cancelled, or ran into a budget, before the call ended"
_VERSION_8 = 8 << 76 | 2 << 62
_NOT_VERSION = ~(15 << 76 | 3 << 62)


@overload
async def perform(fn: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R: ...
@overload
async def perform(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
async def perform(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run `fn(*args, **kwargs)` once, and record the call.

    A replay and a resumed run return the recorded result. A sync `fn` runs in a worker thread. The returned value has
    the function's declared return type and is made from the JSON form of the result; without a declared type it
    consists of plain JSON values. Outside of any run the function just runs.

    Raises:
        EffectError: the function raised, or its result has no exact JSON form. In a live run, `__cause__` is the
            original error.
        EffectNotAllowedError, NoRunError, RunClosedError, CallClosedError: no effect can be performed here.
    """
    frame = frame_or_none()
    if frame is None:
        return await fn(*args, **kwargs) if is_async(fn) else await in_thread(functools.partial(fn, *args), kwargs)
    spec = spec_of(fn)
    return await _performed(frame, spec, spec.named(args, kwargs), fn, args, kwargs)


async def perform_as(
    name: str,
    request: Mapping[str, Any],
    body: Callable[[], Any],
    *,
    idempotent: bool = False,
    timeout: float | None = None,
    usage: Callable[[Any], Any] | None = None,
    tokens: int = 0,
    returns: Any = Any,
) -> Any:
    """Run `body()` once, and record it as the effect `name`.

    Use it to wrap another library's calls: only the name and the request identify the effect and are recorded, so
    `body` is free in its clients and callbacks. See `perform`, and `effect` for the marks. `returns` is the type of the
    result; with `Any`, the result consists of plain JSON values.

    Raises:
        EngineUsageError: the name is empty or starts with `refold.`, or the request is not a mapping with text keys.
        EffectError, EffectNotAllowedError, NoRunError, RunClosedError, CallClosedError: as `perform` does.
    """
    if not isinstance(name, str) or not name or name.startswith("refold."):
        raise EngineUsageError(f"an effect needs a name that does not begin with 'refold.', got {name!r:.80}")
    if not isinstance(request, Mapping) or not all(isinstance(key, str) for key in request):
        raise EngineUsageError(f"the request of effect {name!r} must be a dict with text keys, got {request!r:.80}")
    frame = frame_or_none()
    if frame is None:
        value = body() if is_async(body) else await in_thread(body, {})
        return await value if inspect.isawaitable(value) else value
    spec = spec_as(name, Marks(idempotent, timeout, usage, tokens), is_async(body), returns)
    return await _performed(frame, spec, dict(request), body, (), {})


def in_run() -> bool:
    """Return whether this code runs inside a run, or inside `reduce`."""
    return frame_variable.get() not in (None, OUTSIDE)


async def _performed(
    frame: Frame, spec: EffectSpec, named: dict[str, Any], fn: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    call = frame.host.begin(frame, spec, named)
    if call.recorded is not None:
        await frame.host.turn(call)
        return typed(spec, replayed(call)[1])
    if call.order is not None:
        await call.order.all()
    if not started(call, args, kwargs):
        await reserve(call, args, kwargs)
    held, data, _ = await carry_out(call, functools.partial(fn, *args) if args else fn, kwargs)
    return typed(spec, data, held)


def perform_sync(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `fn` once in this thread and record it, from sync code.

    Raises EngineUsageError if `fn` is async, and the errors of `perform`.
    """
    spec = spec_of(fn)
    if spec.is_async:
        raise EngineUsageError(f"{spec.name} is async; use `await perform({spec.name}, ...)`")
    frame = frame_or_none()
    if frame is None:
        return fn(*args, **kwargs)
    call = frame.host.begin(frame, spec, spec.named(args, kwargs))
    if call.recorded is not None:
        if not in_event_loop():  # a loop must not wait; the live call blocked the loop, so no outcome came before it
            with waits_in_thread():
                frame.host.turn_in_thread(call)
        return cast(R, typed(spec, replayed(call)[1]))
    if call.order is not None and not in_event_loop():
        with waits_in_thread():
            call.order.all_in_thread()
    while not started(call, args, kwargs):
        time.sleep(_POLL_SECONDS)
    token = set_frame(frame_inside(call))
    try:
        value = _called_here(fn, args, kwargs)
    except Exception as error:
        if _is_cut_off(error):
            call.cancelled(_CUT_OFF)
            raise
        call.fail(error)
    except BaseException:
        call.cancelled("the call was interrupted")
        raise
    finally:
        reset_frame(token)
    held, data, _ = call.finish(value)
    return cast(R, typed(spec, data, held))


def _called_here(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function.

    If it forks this process (`os.fork`), the child process ends with the function.
    """
    before = forks.number
    try:
        value = fn(*args, **kwargs)
    except BaseException as error:
        if forks.number != before:
            end_child(error)
        raise
    if forks.number != before:
        end_child(None)
    return value


def tokens_needed(spec: EffectSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return how many tokens a call reserves, by its `tokens` mark.

    Inside a call that has a reservation, this is 0.
    """
    tokens = spec.marks.tokens
    frame = frame_or_none()
    outer = frame.call if frame is not None else None
    while outer is not None:
        if outer.reserved:
            return 0
        outer = outer.frame.call
    return tokens(*args, **kwargs) if callable(tokens) else tokens


def started(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Reserve the call's tokens and write its intent.

    Returns False while other calls hold the remaining tokens.
    """
    run = call.run
    assert run is not None
    if run.is_limited and not run.reserve(call, tokens_needed(call.spec, args, kwargs)):
        return False
    run.open(call)
    return True


async def reserve(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Wait until the call can start, and start it; see `started`."""
    while not started(call, args, kwargs):
        await anyio.sleep(_POLL_SECONDS)


async def carry_out(
    call: Call, fn: Callable[..., Any], kwargs: dict[str, Any], *, alone: bool = False
) -> tuple[Any, bytes, int]:
    """Run a started call to its outcome, here or in a thread.

    Returns the result of `Call.finish`. If `alone`, only the call awaits in this task: a cancellation that no scope
    requested came from the call's own code and is the call's error.
    """
    spec, task = call.spec, own_task()
    # a tool started by the thread of `decide` may have been cancelled already: see `run.onward`
    before = 0 if task is None or call.work is not None else task.cancelling()
    process = forks.number
    token = set_frame(frame_inside(call))
    try:
        try:
            if spec.is_async:
                work = call.running(fn(**kwargs))
            else:
                work = in_thread(fn, kwargs) if call.work is None else call.work
            if spec.marks.timeout is None:
                value = await work
            else:
                with anyio.fail_after(spec.marks.timeout):
                    value = await work
        except BaseException as error:
            if forks.number != process:
                end_child(error)
            raise
        if forks.number != process:
            end_child(None)
    except (Exception, SystemExit) as error:
        if _is_cut_off(error):
            call.cancelled(_CUT_OFF)
            raise
        if is_cancelled() or (not alone and cancel_requests() > before):
            call.cancelled(_CUT_OFF)  # an error raised after cancellation does not say how far the call came
            await checkpoint_if_cancelled()
            raise
        if isinstance(error, SystemExit):
            error = RuntimeError(f"SystemExit: {error.code}")
        if type(error) is TimeoutError and not error.args and call.spec.marks.timeout is not None:
            error = TimeoutError(f"{call.spec.name} took longer than its timeout of {call.spec.marks.timeout} s")
        call.fail(error)
    except asyncio.CancelledError as error:
        if not is_cancelled() and (alone or cancel_requests() <= before):
            call.fail(stray(call.spec.name, error))
        call.cancelled(_CUT_OFF)
        raise
    except BaseException:
        call.cancelled(_CUT_OFF)
        raise
    finally:
        reset_frame(token)
        if alone and task is not None and task.cancelling() > before and not is_cancelled():
            await withdraw(before)  # the call has cancelled this task, which the run still needs
    return call.finish(value)


def _is_cut_off(error: BaseException) -> bool:
    """Return whether the run cut the call off.

    A task group may have wrapped the error in an ExceptionGroup.
    """
    if isinstance(error, ExceptionGroup):
        return error.subgroup(RunAbortedError) is not None
    return isinstance(error, RunAbortedError)


def now() -> datetime:
    """Return the time, in UTC, which a replay returns again."""
    return perform_sync(_read_clock)


@effect(idempotent=True, name="now")
def _read_clock() -> datetime:
    frame = frame_or_none()
    return datetime.now(UTC) if frame is None else datetime.fromtimestamp(frame.host.wall_time(), UTC)


def rng(name: str = "") -> random.Random:
    """Return a random stream for this place and `name`.

    It depends on the run's seed. Each hook or call has one stream of each name, and so has each task and thread inside.
    """
    frame = frame_or_none()
    if frame is None:
        return random.Random()
    lane = lane_in(frame).name
    stream = frame.rngs.get((lane, name))
    if stream is None:
        place = f"rng|{name}" if lane == frame.name else f"rng|{name}|{lane}"
        stream = frame.rngs[lane, name] = random.Random(int.from_bytes(frame.derive(place)))
    return stream


def new_id() -> str:
    """Return a UUID that a replay returns again.

    It has version 8 (RFC 9562), and depends only on the run's seed and this place.
    """
    frame = frame_or_none()
    if frame is None:
        return str(uuid.uuid4())
    number = int.from_bytes(frame.derive(f"id|{lane_in(frame).number('id')}"))
    return str(uuid.UUID(int=number & _NOT_VERSION | _VERSION_8))


def emit(name: str, **data: Any) -> None:
    """Write an event to the trace.

    Does nothing outside of any run. Raises ValueError for an empty name.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"an event needs a name, got {name!r}")
    frame = frame_or_none()
    if frame is not None:
        frame.host.emit(frame, name, data)


def charge(tokens_in: int = 0, tokens_out: int = 0, cost: float | None = None, *, estimated: bool = False) -> None:
    """Add usage to the running effect or tool.

    Use it if the usage cannot be read from the result. Tokens are counts, `cost` is in US dollars. `estimated` marks
    the tokens as an estimate because no provider has reported them; budgets count estimated tokens separately.

    Raises NoRunError inside a hook but outside of an effect or tool: on resume, usage is counted from outcomes.
    """
    usage = Usage(tokens_in, tokens_out, cost, estimated)
    frame = frame_or_none()
    if frame is None:
        return
    if frame.call is None:
        raise NoRunError(
            "charge() belongs inside a function that is performed, or a tool; wrap the model call in perform()"
        )
    frame.call.charge(usage)


def follow_run(known: Follower | None = None) -> Follower:
    """Return a reader of the running run's trace, at its beginning.

    If `known` reads this trace already, returns `known`. A module may use the reader to show the run's records to
    others, but never for a decision, which must depend on the state alone. Raises NoRunError if no run is live here.
    """
    frame = frame_or_none()
    writer = None if frame is None else frame.host.writer
    if writer is None:
        raise NoRunError("no run is live here; follow a trace from inside a hook, an effect or a tool of its run")
    return known if known is not None and known.follows(writer) else Follower(writer)


def call_info() -> CallInfo:
    """Return facts about the running effect or tool.

    Among them is its idempotency key. Raises NoRunError outside of an effect or a tool.
    """
    frame: Frame | None = frame_or_none()
    if frame is None or frame.call is None:
        raise NoRunError("call_info() belongs inside an effect or a tool; call it in the function that is performed")
    info: CallInfo = frame.call.info()
    return info
