"""How a run's first state comes to be, live and when verified: what init_state gives, with the engine's own fields."""

import inspect
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from ..tasks import Task
from .budget import RuntimeBudget
from .errors import ModuleDefinitionError
from .module import AgentModule
from .state import StateSchema, assemble
from .workers import in_thread


async def call_hook(hook: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """Calls a hook: async ones on the loop, sync ones in a worker thread."""
    value = hook(**kwargs) if inspect.iscoroutinefunction(hook) else await in_thread(hook, kwargs)
    return await value if inspect.isawaitable(value) else value


def _check_inputs(module: AgentModule[Any], inputs: dict[str, Any]) -> None:
    parameters = inspect.signature(module.init_state).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for name in inputs:
        if name not in parameters:
            raise ModuleDefinitionError(
                f"the task's input {name!r} is not a parameter of {type(module).__name__}.init_state; "
                f"its parameters are {', '.join(parameters)}"
            )


async def first_state(module: AgentModule[Any], task: Task, budget: RuntimeBudget) -> StateSchema:
    """The state that a run of this task begins with.

    The engine writes `task`, `current_step`, `max_steps`, and under `metadata` the task's metadata and constraints.
    Raises ModuleDefinitionError where init_state does not take the task's inputs, or returns no state.
    """
    inputs = deepcopy(task.inputs)
    if inputs:
        _check_inputs(module, inputs)
    state = await call_hook(module.init_state, {"task": task.objective, **inputs})
    if not isinstance(state, module.state_class):
        raise ModuleDefinitionError(
            f"{type(module).__name__}.init_state returned {type(state).__name__}; "
            f"it must return a {module.state_class.__name__}"
        )
    metadata = {**task.metadata, **state.metadata}
    if task.constraints:
        metadata["constraints"] = task.constraints
    fields = {"task": task.objective, "current_step": 0, "max_steps": budget.max_steps, "metadata": metadata}
    made: StateSchema = assemble(type(state), {**state.__dict__, **fields}, tuple(fields))
    return made
