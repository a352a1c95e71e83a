"""`run_child`: a run inside a run, as one effect of it."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import orjson

from ...tasks import Task, TaskBudget, as_task
from ..concurrency.jobs import Job
from ..effects.budget import RuntimeBudget
from ..effects.call import Call, replayed
from ..effects.context import Frame, frame_or_none
from ..effects.journal import CHILD
from ..effects.perform import carry_out, reserve, started
from ..effects.redaction import redacted_task
from ..effects.spec import EffectSpec, Marks
from ..errors import EngineUsageError
from ..loop.stop_criteria import StopCriteria
from ..module import AgentModule
from ..run.live_run import LiveRun
from .child_result import ChildResult, Reads
from .child_run import InnerRun, Place

_SPEC = EffectSpec(CHILD, Marks(idempotent=True, usage=lambda result: None), True, (), None)
_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 24


async def run_child(
    module: AgentModule[Any],
    task: Task | str,
    *,
    name: str | None = None,
    budget: RuntimeBudget | TaskBudget | None = None,
    stop: Sequence[StopCriteria] = (),
    value: Reads = None,
) -> ChildResult:
    """Runs a module's task as a child of this run, to its end; called in `init_state`, `decide`, `act` or a tool.

    It is an effect of the run: when that is replayed, verified or resumed, a child that had ended is not run again, and
    one that was cut off goes on from its own trace, which stands in the family's folder. The child has the run's seed
    (and a fork path of its own), clock, handler for waits, secrets and environment; it spends from the run's budget, by
    its deadline, and is cancelled with it. What it waits for, the run waits for.

    Args:
        module: what runs.
        task: what for; its own budget holds as well, and its success criteria are evaluated.
        name: what the child is called, in its id and in questions; by default as the module's class.
        budget: the most of the run's budget that it may have; its steps are its own, 20 if nothing is said.
        stop: further stop criteria.
        value: makes a JSON value of the child's last state, for `ChildResult.value`.

    A child that fails, or is stopped by a budget, gives a result that says so. With no run in context it just runs.

    Raises:
        EngineUsageError: `module` is none.
        ChildRunError: the child's trace cannot be written or gone on with; the run fails, and can be resumed.
        EffectError: `value` failed, or gave what is no JSON.
    """
    task, limits = checked(module, task, budget)
    frame = frame_or_none()
    if frame is None:
        return ChildResult.of(await AgentModule.make_engine(module, budget=limits, stop=stop).arun(task), value)
    name, task = name_of(name, module), without_secrets(task, frame)
    call = frame.host.begin(frame, _SPEC, named(name, task))
    if call.recorded is None:
        run = cast(LiveRun, call.run)
        child = InnerRun(run, Place.of(call), module, task, name, limits, stop)
        call.pending["child"], call.waited = child.run_id, run.waits.waited

        async def bring() -> dict[str, Any]:
            job = Job(lambda: child.bring(call), run.context.copy())
            call.when_left = partial(run.waits.in_loop, job.cancel)
            result = await job.run()
            return ChildResult.of(result, value).to_dict()

        return ChildResult.from_dict(await made(call, bring))
    return ChildResult.from_dict(await given(call))


async def made(call: Call, work: Any) -> Any:
    """What a call gives that is made now."""
    if call.order is not None:
        await call.order.all()
    if not started(call, (), {}):
        await reserve(call, (), {})
    return orjson.loads((await carry_out(call, work, {}))[1])


async def given(call: Call) -> Any:
    """What a call gave that is recorded."""
    await call.frame.host.turn(call)
    return orjson.loads(replayed(call)[1])


def checked(
    module: AgentModule[Any], task: Task | str, budget: RuntimeBudget | TaskBudget | None
) -> tuple[Task, RuntimeBudget]:
    """A child's task, and what it may have; raises EngineUsageError for what is no module."""
    if not isinstance(cast(object, module), AgentModule):
        raise EngineUsageError(f"a child run takes an AgentModule instance, got {type(module).__name__}")
    task = as_task(task)
    limits = budget if isinstance(budget, RuntimeBudget) else RuntimeBudget().under(budget)
    return task, limits.under(task.budget)


def named(name: str, task: Task) -> dict[str, Any]:
    """The arguments by name, as the intent carries them: what makes it the same child when it is asked for again."""
    return {"name": name, "task": task.to_dict()}


def name_of(name: str | None, module: AgentModule[Any]) -> str:
    """A child's name in the form that ids have."""
    plain = _NAME.sub("-", (name if name is not None else type(module).__name__).lower()).strip("-")
    return plain[:_LONGEST_NAME].strip("-") or "child"


def without_secrets(task: Task, frame: Frame) -> Task:
    """The task as it may be written."""
    run = frame.host
    redactor = run.redactor if isinstance(run, LiveRun) else None
    return task if redactor is None else redacted_task(task, redactor)
