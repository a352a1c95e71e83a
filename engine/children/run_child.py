"""`run_child`: runs a child as one effect of its parent."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import orjson

from ...errors import EngineUsageError
from ...tasks import Task, TaskBudget, as_task
from ...traces.file.children import CALLED
from ..concurrency.tasks import Job
from ..effects.budget import RuntimeBudget
from ..effects.call import Call, replayed
from ..effects.carry_out import carry_out, reserve, started
from ..effects.context import Frame, frame_or_none
from ..effects.redaction import make_redactor, redacted_task
from ..effects.spec import EffectSpec, Marks
from ..effects.tools import check_tools
from ..loop.stop_criteria import StopCriteria
from ..module import Module
from ..module_import import refuse_while_importing
from ..result import RunResult
from ..run.drive import execute, logged
from ..run.live_run import LiveRun
from ..run.start.plan import RunOptions, RunPlan
from .child_result import ChildResult, Reads
from .registry import ChildRegistry, registry_of

_SPEC = EffectSpec(CALLED, Marks(idempotent=True, usage=lambda result: None), True, (), None)
_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 24


async def run_child(
    module: Module[Any],
    task: Task | str,
    *,
    name: str | None = None,
    budget: RuntimeBudget | TaskBudget | None = None,
    stop: Sequence[StopCriteria] = (),
    value: Reads = None,
) -> ChildResult:
    """Run a module's task as a child of this run.

    Call it in `init_state`, `decide`, `act` or a tool. The child is an effect of the run: when the run is replayed,
    verified or resumed, a child that had ended is not run again, and an unfinished child resumes from its own trace,
    which is in the family's folder. The child has the run's seed (with its own fork path), clock, `on_wait`, secrets
    and environment. It spends from the run's budget, ends by the run's deadline, and is cancelled with the run. While
    the child waits for an answer, the run waits too. A child that fails, or is stopped by a budget, returns a result
    that says so. Outside of any run, the module just runs.

    Args:
        module: the child's module.
        task: the child's task; its own budget applies too, and its success criteria are evaluated.
        name: a name for the child's id and requests, by default the module's class.
        budget: the largest part of the run's budget for the child. Its steps are its own, 20 by default.
        stop: further stop criteria.
        value: makes a JSON value of the child's last state, for `ChildResult.value`.

    Raises:
        EngineUsageError: `module` is not an AgentModule instance.
        ChildRunError: the child's trace cannot be written or resumed; the run fails, and can be resumed.
        EffectError: `value` failed, or returned a value without a JSON form (outside of any run, the error itself).
    """
    task, limits = checked(module, task, budget)
    frame = frame_or_none()
    if frame is None:
        return ChildResult.of(await _alone(module, task, limits, stop), value)
    name, task = name_of(name, module), without_secrets(task, frame)
    call = frame.host.begin(frame, _SPEC, named(name, task))
    if call.recorded is None:
        child = registry_of(call).called(call, module, task, name, limits, stop)
        run = child.run
        call.note(child=child.run_id)
        call.waits_by(run.waits.waited)

        async def bring() -> dict[str, Any]:
            job = Job(lambda: child.bring_for(call), run.context.copy())
            call.on_left(partial(run.waits.in_loop, job.cancel))
            result = await job.run()
            return ChildResult.of(result, value).to_dict()

        return ChildResult.from_dict(await made(call, bring))
    return ChildResult.from_dict(await given(call))


async def _alone(
    module: Module[Any], task: Task, budget: RuntimeBudget, stop: Sequence[StopCriteria]
) -> RunResult[Any]:
    """Run a module outside of any run, by an Engine's defaults."""
    refuse_while_importing()
    check_tools(module.tools)
    redactor = make_redactor(True)
    options = RunOptions(children=ChildRegistry, stop=tuple(stop), branch=module.branch, redactor=redactor)
    return logged(await execute(RunPlan.fresh(module, task, budget, options)))


async def made(call: Call, work: Any) -> Any:
    """Run a new call with `work`, and return its JSON result."""
    if call.order is not None:
        await call.order.all()
    if not started(call, (), {}):
        await reserve(call, (), {})
    return orjson.loads((await carry_out(call, work, {}))[1])


async def given(call: Call) -> Any:
    """Return the recorded result of a call as JSON values."""
    await call.frame.host.turn(call)
    return orjson.loads(replayed(call)[1])


def checked(
    module: Module[Any], task: Task | str, budget: RuntimeBudget | TaskBudget | None
) -> tuple[Task, RuntimeBudget]:
    """Return a child's task and budget, or raise EngineUsageError."""
    if not isinstance(cast(object, module), Module):
        raise EngineUsageError(f"a child run takes an AgentModule instance, got {type(module).__name__}")
    task = as_task(task)
    limits = budget if isinstance(budget, RuntimeBudget) else RuntimeBudget().under(budget)
    return task, limits.under(task.budget)


def named(name: str, task: Task) -> dict[str, Any]:
    """Return the arguments of the intent, which identify the child."""
    return {"name": name, "task": task.to_dict()}


def name_of(name: str | None, module: Module[Any]) -> str:
    """Return a child's name for ids: lower-case letters, digits, hyphens."""
    plain = _NAME.sub("-", (name if name is not None else type(module).__name__).lower()).strip("-")
    return plain[:_LONGEST_NAME].strip("-") or "child"


def without_secrets(task: Task, frame: Frame) -> Task:
    """Return the task with secrets removed."""
    run = frame.host
    redactor = run.redactor if isinstance(run, LiveRun) else None
    return task if redactor is None else redacted_task(task, redactor)
