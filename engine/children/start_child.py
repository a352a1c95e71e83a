"""`start_child`, `child_state`, `wait_child`: child runs that go on while their run takes further steps."""

from typing import Any, cast

from ...tasks import Task, TaskBudget
from ..effects.budget import RuntimeBudget
from ..effects.context import Frame, frame_or_none
from ..effects.journal import AWAITED, STARTED
from ..effects.spec import EffectSpec, Marks
from ..errors import NoRunError
from ..module import AgentModule
from ..run.live_run import LiveRun
from .background import Besides
from .child_result import ChildResult, Reads
from .child_run import InnerRun, Place
from .run_child import checked, given, made, name_of, named, without_secrets


def _spec(name: str) -> EffectSpec:
    return EffectSpec(name, Marks(idempotent=True, usage=lambda result: None), True, (), None)


_START, _STATE, _WAIT = _spec(STARTED), _spec("refold.child_state"), _spec(AWAITED)


async def start_child(
    module: AgentModule[Any],
    task: Task | str,
    *,
    name: str | None = None,
    budget: RuntimeBudget | TaskBudget | None = None,
) -> str:
    """Begins a child run that goes on beside the steps of this run; gives a label to know it by. See `run_child`.

    The label, such as `2.helper-1f3a9c2b04`, is the same whenever the run is replayed, resumed or forked. Before the
    run ends it waits for the child, within its budget; where the run fails or is cancelled, so is the child.
    When the run is resumed, `AgentModule.child_module` is asked what such a child runs.

    Raises NoRunError outside of a run, and what `run_child` raises.
    """
    task, limits = checked(module, task, budget)
    frame = _frame("start_child")
    name, task = name_of(name, module), without_secrets(task, frame)
    call = frame.host.begin(frame, _START, named(name, task))
    if call.recorded is not None:
        return str(await given(call))
    run = cast(LiveRun, call.run)
    child = InnerRun(run, Place.of(call), module, task, name, limits)
    call.pending["child"] = child.run_id

    async def start() -> str:
        if run.besides is None:
            run.besides = Besides(run)
        await run.besides.begin(child).begun()
        return child.label

    return str(await made(call, start))


async def child_state(label: str, *, value: Reads = None) -> ChildResult:
    """How a child that `start_child` has begun stands now; its result, once it has ended.

    Raises NoRunError outside of a run; EngineUsageError, as an EffectError, for a child that the run does not have.
    """
    frame = _frame("child_state")
    call = frame.host.begin(frame, _STATE, {"child": label})
    if call.recorded is not None:
        return ChildResult.from_dict(await given(call))

    async def look() -> dict[str, Any]:
        return _besides(call.run).standing(label, value).to_dict()

    return ChildResult.from_dict(await made(call, look))


async def wait_child(label: str, *, seconds: float | None = None, value: Reads = None) -> ChildResult:
    """Waits for a child that `start_child` has begun, for so many seconds at most; gives how it then stands.

    What the child waits for, the run now waits for too, unless `seconds` are given: then it stands as waiting. Raises
    as `child_state` does.
    """
    frame = _frame("wait_child")
    arguments = {"child": label} | ({} if seconds is None else {"seconds": seconds})
    call = frame.host.begin(frame, _WAIT, arguments)
    if call.recorded is not None:
        return ChildResult.from_dict(await given(call))
    call.waited = call.run.waits.waited

    async def wait() -> dict[str, Any]:
        return (await _besides(call.run).ended(label, call, seconds, value)).to_dict()

    return ChildResult.from_dict(await made(call, wait))


def _frame(name: str) -> Frame:
    frame = frame_or_none()
    if frame is None:
        raise NoRunError(f"{name}() is for runs inside a run; call it in a hook or a tool of a run")
    return frame


def _besides(run: LiveRun) -> Besides:
    return run.besides if run.besides is not None else Besides(run)
