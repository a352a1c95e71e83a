"""`start_child`, `child_state`, `wait_child`: start, inspect and await background children."""

from typing import Any

from ...errors import NoRunError
from ...tasks import Task, TaskBudget
from ...traces.file.children import STARTED
from ..effects.budget import RuntimeBudget
from ..effects.context import Frame, frame_or_none
from ..effects.journal.journal import AWAITED
from ..effects.spec import EffectSpec, Marks
from ..module import Module
from .child_result import ChildResult, Reads
from .registry import registry_of
from .run_child import checked, given, made, name_of, named, without_secrets


def _spec(name: str) -> EffectSpec:
    return EffectSpec(name, Marks(idempotent=True, usage=lambda result: None), True, (), None)


_START, _STATE, _WAIT = _spec(STARTED), _spec("refold.child_state"), _spec(AWAITED)


async def start_child(
    module: Module[Any],
    task: Task | str,
    *,
    name: str | None = None,
    budget: RuntimeBudget | TaskBudget | None = None,
) -> str:
    """Start a background child, and return its label.

    The arguments are those of `run_child`. The label, such as `2.helper-1f3a9c2b04`, stays the same when the run is
    replayed, resumed or forked. Before the run ends, it waits for the child, within its budget. If the run fails or is
    cancelled, the child is cancelled. A resumed run calls `AgentModule.child_module` for the module of such a child.

    Raises NoRunError outside of a run, and the errors of `run_child`.
    """
    task, limits = checked(module, task, budget)
    frame = _frame("start_child")
    name, task = name_of(name, module), without_secrets(task, frame)
    call = frame.host.begin(frame, _START, named(name, task))
    if call.recorded is not None:
        return str(await given(call))
    registry = registry_of(call)
    child = registry.called(call, module, task, name, limits)
    call.note(child=child.run_id)

    async def start() -> str:
        await registry.background(child).started()
        return child.label

    return str(await made(call, start))


async def child_state(label: str, *, value: Reads = None) -> ChildResult:
    """Return the present status of a background child, or its result.

    `value` makes a JSON value of the child's last state, for `ChildResult.value`. Raises NoRunError outside of a run,
    and EffectError (of type EngineUsageError) if the run has no child `label`.
    """
    frame = _frame("child_state")
    call = frame.host.begin(frame, _STATE, {"child": label})
    if call.recorded is not None:
        return ChildResult.from_dict(await given(call))

    async def look() -> dict[str, Any]:
        return registry_of(call).status(label, value).to_dict()

    return ChildResult.from_dict(await made(call, look))


async def wait_child(label: str, *, seconds: float | None = None, value: Reads = None) -> ChildResult:
    """Wait at most `seconds` for a background child; return its status.

    Without `seconds`, the run shows the child's requests as its own and waits for their answers. With `seconds`, a
    child that waits for an answer is returned with the status "waiting". Raises the errors of `child_state`.
    """
    frame = _frame("wait_child")
    arguments = {"child": label} | ({} if seconds is None else {"seconds": seconds})
    call = frame.host.begin(frame, _WAIT, arguments)
    if call.recorded is not None:
        return ChildResult.from_dict(await given(call))
    registry = registry_of(call)
    call.waits_by(call.run.waits.waited)

    async def wait() -> dict[str, Any]:
        return (await registry.wait(label, call, seconds, value)).to_dict()

    return ChildResult.from_dict(await made(call, wait))


def _frame(name: str) -> Frame:
    frame = frame_or_none()
    if frame is None:
        raise NoRunError(f"{name}() is for runs inside a run; call it in a hook or a tool of a run")
    return frame
