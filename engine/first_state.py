"""The first state of a run: `init_state`'s, with the engine's fields."""

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache
from typing import Any

from ..errors import ModuleDefinitionError
from ..tasks import Task, TaskValidationIssue
from .concurrency.threads import in_thread
from .effects.budget import RuntimeBudget
from .module import Module, kind_of
from .state.model import StateSchema, assemble


async def call_hook(hook: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Call a hook and return its result.

    A sync hook runs in a worker thread.
    """
    value = hook(**kwargs) if inspect.iscoroutinefunction(hook) else await in_thread(hook, kwargs)
    return await value if inspect.isawaitable(value) else value


def input_issues(module: Module[Any], task: Task) -> list[TaskValidationIssue]:
    """Return the issues of a task's unknown and missing inputs."""
    takes_all, known, required = _parameters(type(module).init_state)
    where = f"{type(module).__name__}.init_state"
    issues = []
    for name in task.inputs:
        if name == "task" or not (takes_all or name in known):
            message = f"{name!r} is not a parameter of {where}; its parameters are {', '.join(known) or 'none'}"
            issues.append(TaskValidationIssue(code="TASK_INPUT_UNKNOWN", message=message, field=f"inputs.{name}"))
    for name in required:
        if name not in task.inputs:
            message = f"{where} needs the input {name!r}; give it in the task's inputs"
            issues.append(TaskValidationIssue(code="TASK_INPUT_MISSING", message=message, field=f"inputs.{name}"))
    return issues


@lru_cache(maxsize=256)
def _parameters(init_state: Callable[..., Any]) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """Return whether `init_state` has `**inputs`, its named and its required inputs."""
    parameters = [p for p in inspect.signature(init_state).parameters.values() if p.name not in ("self", "task")]
    named = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return takes_all, tuple(p.name for p in named), tuple(p.name for p in named if p.default is p.empty)


async def first_state(module: Module[Any], task: Task, budget: RuntimeBudget) -> StateSchema:
    """Return the first state of a run of this task.

    The engine sets `task`, `current_step` and `max_steps`, and adds the task's metadata and constraints to `metadata`,
    in which values of `init_state` win over the task's. Raises ModuleDefinitionError if `init_state` does not return a
    state of the module's class.
    """
    state = await call_hook(module.init_state, {"task": task.objective, **deepcopy(task.inputs)})
    if not isinstance(state, module.state_class):
        raise ModuleDefinitionError(
            f"{type(module).__name__}.init_state returned {kind_of(state)}; "
            f"it must return an instance of {module.state_class.__name__}"
        )
    metadata = {**task.metadata, **state.metadata}
    if task.constraints:
        metadata["constraints"] = task.constraints
    fields = {"task": task.objective, "current_step": 0, "max_steps": budget.max_steps, "metadata": metadata}
    made: StateSchema = assemble(type(state), {**state.__dict__, **fields}, tuple(fields))
    return made
