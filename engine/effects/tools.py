"""Carries out a decision's actions: each is a recorded tool call; the results come in the actions' order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from pydantic import PydanticUserError

from ...errors import ArgumentError, EffectError, EngineUsageError, ModuleDefinitionError
from ..concurrency.cancellation import is_cancelled, stray
from ..concurrency.several import the_one_of
from ..loop.decision import Action, ActionResult, Decision, Observation, made
from .call import Call, plain, replayed
from .context import Frame, frame_or_none
from .lanes import lane_in
from .perform import carry_out, reserve, started
from .spec import spec_of
from .state_refs import request_digest
from .tool_arguments import signature_of

Tools = Mapping[str, Callable[..., Any]]


async def run_actions(tools: Tools, decision: Decision) -> Observation:
    """Run the actions of an act decision with `tools`; the error of a tool becomes an error result.

    For an unknown tool, or for arguments that do not fit, return an error result that names the nearest matches,
    without a call. Raises EngineUsageError outside of a run.
    """
    frame = frame_or_none()
    if frame is None:
        raise EngineUsageError(
            "actions are carried out inside a run; call the tool itself, or use Engine(module).run(task)"
        )
    return await act_on(frame, tools, decision)


async def act_on(frame: Frame, tools: Tools, decision: Decision, *, own_task: bool = False) -> Observation:
    """Carry out actions in a frame, all at once if the decision is parallel, otherwise one after the other.

    `own_task` says that only the run awaits in this task, so that a single call needs no task of its own.
    """
    actions = decision.actions
    if len(actions) == 1:
        begun = _begin(frame, tools, actions[0])
        if own_task or isinstance(begun, ActionResult) or not begun.call.spec.is_async:
            return made(Observation, {"results": (await _run(begun),)})
        return made(Observation, {"results": tuple(await _together([begun]))})
    frames = [_own(frame) for _ in actions]
    _number(frame, frames, actions)
    if decision.parallel:
        # all intents are prepared here, since event loops start tasks in different orders
        begun_all = [_begin(frames[i], tools, actions[i]) for i in range(len(actions))]
        return made(Observation, {"results": tuple(await _together(begun_all))})
    results: list[ActionResult] = []
    for own, action in zip(frames, actions, strict=True):
        results += await _together([_begin(own, tools, action)])
    return made(Observation, {"results": tuple(results)})


async def _together(begun: list["_Begun | ActionResult"]) -> list[ActionResult]:
    """Carry out calls at the same time, each in its own task; return one result for each, in their order."""
    results: dict[int, ActionResult] = {}
    errors: list[BaseException] = []
    cancelled = anyio.get_cancelled_exc_class()

    async def run_into(i: int) -> None:
        try:
            results[i] = await _run(begun[i])
        except BaseException as raised:  # noqa: BLE001 - raised on below: Ctrl-C through a task would end the loop
            if not isinstance(raised, cancelled):
                errors.append(raised)
                group.cancel_scope.cancel()
            elif not is_cancelled():
                results[i] = _stray(begun[i], raised)

    async with anyio.create_task_group() as group:
        for i in range(len(begun)):
            group.start_soon(run_into, i)
    if errors:
        error = the_one_of(errors)
        raise error from error.__cause__
    await checkpoint_if_cancelled()
    return [results[i] for i in range(len(begun))]


def _stray(begun: "_Begun | ActionResult", raised: BaseException) -> ActionResult:
    """Return the result of a call that was cancelled before it started, and not by its run."""
    assert isinstance(begun, _Begun)
    error, id_ = stray(begun.action.name, raised), begun.action.id or begun.action.name
    return ActionResult(id_, begun.action.name, None, str(error), type(error).__name__, begun.call.outcome)


def _own(frame: Frame) -> Frame:
    lane = lane_in(frame).name
    return Frame(frame.host, frame.step, frame.phase, frame.parent, frame.prefix, frame.call, frame.span, lane)


def _number(frame: Frame, frames: list[Frame], actions: tuple[Action, ...]) -> None:
    """Number equal calls in the order of the actions, since the order in which they start may vary."""
    for own, action in zip(frames, actions, strict=True):
        digest = request_digest(frame.prefix, action.name, action.args)
        own.begin_at(digest, lane_in(frame).number(digest))


@dataclass(slots=True)
class _Begun:
    """A tool call with its checked arguments, ready to run or to be served from the journal."""

    action: Action
    fn: Callable[..., Any]
    kwargs: dict[str, Any]
    call: Call


def _begin(frame: Frame, tools: Tools, action: Action) -> _Begun | ActionResult:
    """Return the call of an action, or the error result that says why it cannot be made."""
    fn = check_dict(tools).get(action.name)
    name, id_ = action.name, action.id or action.name
    if not callable(fn):
        if fn is not None:
            raise ModuleDefinitionError(f"tool {name!r} is no function but {type(fn).__name__} {fn!r}")
        names = [*map(str, tools)]
        near = get_close_matches(name, names, 3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        known_names = ", ".join(sorted(names)) or "none"
        return ActionResult(
            id_, name, None, f"there is no tool {name!r}; the tools are {known_names}{hint}", "UnknownToolError"
        )
    known = frame.host.tools.get(name)
    try:
        if known is None or known[0] is not fn:
            known = frame.host.tools[name] = fn, signature_of(name, fn), spec_of(fn, name)
        kwargs = known[1].check(action.args)
    except ArgumentError as error:
        return ActionResult(id_, name, None, str(error), "ArgumentError")
    return _Begun(action, fn, kwargs, frame.host.begin(frame, known[2], None, action))


async def _run(begun: _Begun | ActionResult) -> ActionResult:
    if isinstance(begun, ActionResult):
        return begun
    call, kwargs = begun.call, begun.kwargs
    name, id_ = begun.action.name, begun.action.id or begun.action.name
    try:
        if call.recorded is not None:
            output, _, outcome = replayed(call)
        else:
            if not started(call, (), kwargs):
                await reserve(call, (), kwargs)
            held, data, outcome = await carry_out(call, begun.fn, kwargs, own_task=True)
            output = plain(held, data)
    except EffectError as error:
        return ActionResult(id_, name, None, error.message or error.error_type, error.error_type, call.outcome)
    return made(ActionResult, {"id": id_, "name": name, "output": output, "_outcome": outcome})


def check_dict(tools: Tools) -> Tools:
    """Return `tools`; raises ModuleDefinitionError if they are not a mapping."""
    if not isinstance(tools, Mapping):
        raise ModuleDefinitionError(f"tools must be a dict of names and functions, got {type(tools).__name__}")
    return tools


def check_tools(tools: Tools) -> None:
    """Raise ModuleDefinitionError for the first tool that could not be called, with the reason."""
    for name, fn in check_dict(tools).items():
        if not isinstance(name, str) or not name:
            raise ModuleDefinitionError(f"a tool needs a name, got {name!r}")
        if not callable(fn):
            raise ModuleDefinitionError(f"tool {name!r} is no function but {type(fn).__name__} {fn!r}")
        try:
            signature_of(name, fn)
            spec_of(fn, name)
        except (TypeError, NameError, ValueError, PydanticUserError) as error:
            raise ModuleDefinitionError(f"tool {name!r} cannot be called by name and value: {error}") from error
