"""One call: its tokens reserved, its timeout kept, its outcome written."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from ...errors import RunAbortedError
from ..concurrency import forked_processes
from ..concurrency.cancellation import cancel_requests, is_cancelled, own_task, stray, withdraw
from ..concurrency.forked_processes import end_child
from ..concurrency.threads import in_thread
from ..current_frame import reset_frame, set_frame
from .call import Call
from .context import frame_inside, frame_or_none
from .spec import EffectSpec

_POLL_SECONDS = 0.005
"""How often, in seconds, a call that waits for tokens tries to reserve them again.

Tokens are released in any thread and by any run of the family, without a signal. The value is not measured: it is far
below the seconds of the model calls for which such a call waits.
"""
_CUT_OFF = "the run was cancelled, or ran into a budget, before the call ended"


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
    # a tool started by the thread of `decide` may have been cancelled already: see `Runner._begin_tool`
    before = 0 if task is None or call.work is not None else task.cancelling()
    process = forked_processes.number
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
            if forked_processes.number != process:
                end_child(error)
            raise
        if forked_processes.number != process:
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


def carry_out_here(
    call: Call, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, bytes]:
    """Reserve a call's tokens and run it in this thread, blocking.

    Returns the value and its JSON.
    """
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
    return held, data


def _called_here(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function.

    If it forks this process (`os.fork`), the child process ends with the function.
    """
    before = forked_processes.number
    try:
        value = fn(*args, **kwargs)
    except BaseException as error:
        if forked_processes.number != before:
            end_child(error)
        raise
    if forked_processes.number != before:
        end_child(None)
    return value


def _is_cut_off(error: BaseException) -> bool:
    """Return whether the run cut the call off.

    A task group may have wrapped the error in an ExceptionGroup.
    """
    if isinstance(error, ExceptionGroup):
        return error.subgroup(RunAbortedError) is not None
    return isinstance(error, RunAbortedError)
