"""`run_child`: a run inside a run, as one effect of it."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from ..tasks import Task, TaskBudget, as_task
from .budget import RuntimeBudget
from .calls import replayed
from .child_result import ChildResult
from .context import Frame, frame_or_none
from .criteria import StopCriteria
from .effects import carry_out, reserve, started
from .errors import EngineUsageError
from .inner_run import InnerRun, Reads
from .journal import CHILD
from .jsonable import json_result
from .live import LiveRun
from .marks import EffectSpec, Marks
from .module import AgentModule, import_path
from .redact import redacted_task

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
    if not isinstance(module, AgentModule):
        raise EngineUsageError(f"run_child takes an AgentModule instance, got {type(module).__name__}")
    task = as_task(task)
    limits = limits_of(budget).under(task.budget)
    frame = frame_or_none()
    if frame is None:
        result = await AgentModule.make_engine(module, budget=limits, stop=stop).arun(task)
        made = None if value is None or result.state is None else json_result(value(result.state), None, "the value")
        return ChildResult.of(result, orjson.loads(orjson.dumps(made)))
    name, task = name_of(name, module), without_secrets(task, frame)
    named = {"module": import_path(type(module)), "name": name, "task": task.to_dict(), "budget": limits.to_dict()}
    call = frame.host.begin(frame, _SPEC, named)
    if call.recorded is not None:
        await frame.host.turn(call)
        return ChildResult.from_dict(orjson.loads(replayed(call)[1]))
    child = InnerRun(call.run, call, module, task, name, limits, stop, value)
    call.pending["child"] = child.run_id
    call.waited = call.run.waits.waited
    if not started(call, (), {}):
        await reserve(call, (), {})
    _, data, _ = await carry_out(call, child.bring, {})
    return ChildResult.from_dict(orjson.loads(data))


def limits_of(budget: RuntimeBudget | TaskBudget | None) -> RuntimeBudget:
    """What a child may have, as a budget of its own."""
    return RuntimeBudget().under(budget) if not isinstance(budget, RuntimeBudget) else budget


def name_of(name: str | None, module: AgentModule[Any]) -> str:
    """A child's name in the form that ids have."""
    plain = _NAME.sub("-", (name if name is not None else type(module).__name__).lower()).strip("-")
    return plain[:_LONGEST_NAME].strip("-") or "child"


def without_secrets(task: Task, frame: Frame) -> Task:
    """The task as it may be written."""
    run = frame.host
    redactor = run.redactor if isinstance(run, LiveRun) else None
    return task if redactor is None else redacted_task(task, redactor)
