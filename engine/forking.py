"""Where a fork begins: a state of another run, edited, and the link that says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ..tasks import Task
from ..traces import PatchError, Trace, TraceError, apply_patch, split_pointer
from ..traces.compare import make_patch
from .budget import RuntimeBudget
from .commit import fold_step
from .errors import EngineOwnedFieldError, EngineUsageError
from .module import AgentModule
from .state import StateSchema, assemble, dump

Edit = Callable[[Any], Any] | Mapping[str, Any]
"""Changes the draft of a state, as `reduce` does; or values to set, by their JSON Pointers."""


@dataclass(frozen=True)
class Origin:
    """Where a run begins that forks another: `parent` is its header's link."""

    source: Trace
    at: int
    state: StateSchema
    task: Task
    budget: RuntimeBudget
    seed: int
    parent: dict[str, Any]


def origin_of(
    source: Trace,
    at: int | None,
    edit: Edit | None,
    module: AgentModule[Any],
    budget: RuntimeBudget | None,
    reuse_effects: bool,
) -> Origin:
    """State `at` of a run (by default the last one), edited, as the first state of another.

    Raises EngineUsageError for a state or an edit that there cannot be.
    """
    header = source.header
    steps = source.step_count
    index = steps if at is None else at + steps + 1 if at < 0 else at
    if not 0 <= index <= steps:
        raise EngineUsageError(f"run {source.run_id} has states 0 to {steps}; it cannot be forked at {at}")
    try:
        document = source.state(index)
    except TraceError as error:
        raise EngineUsageError(f"run {source.run_id} cannot be forked: {error}") from error
    before = module.state_class.from_dict(document)
    state = _edited(before, edit, module.state_class) if edit is not None else before
    budget = budget or RuntimeBudget(**source.budget)
    limit = max(budget.max_steps, state.current_step, 1)
    if state.max_steps != limit:
        state = assemble(type(state), {**state.__dict__, "max_steps": limit}, ("max_steps",))
    parent: dict[str, Any] = {"run": source.run_id, "step": index, "hash": source.state_record(index).hash}
    if state is not before or before.schema_version != document.get("schema_version", 1):
        parent["edit"] = make_patch(document, orjson.loads(dump(state)))
    if reuse_effects:
        parent["reuse_effects"] = True
    parent["path"] = (header.get("parent") or {}).get("path", "")
    return Origin(source, index, state, Task.from_dict(header["task"]), budget, int(header["seed"]), parent)


def _edited(state: StateSchema, edit: Edit, cls: type[StateSchema]) -> StateSchema:
    if not isinstance(edit, Mapping):
        if not callable(edit):
            raise EngineUsageError(
                f"edit must be a function of a draft, or paths and values, got {type(edit).__name__}"
            )
        return fold_step(state, edit, {})[0]
    document = orjson.loads(dump(state))
    for path, value in edit.items():
        tokens = split_pointer(path)
        if not tokens:
            raise EngineUsageError("an edit sets parts of the state: name one by its path, such as /notes/0")
        if tokens[0] in cls.__refold_engine_fields__:
            raise EngineOwnedFieldError(tokens[0])
        try:
            document = apply_patch(document, [{"op": _operation(document, tokens), "path": path, "value": value}])
        except PatchError as error:
            raise EngineUsageError(f"{path} cannot be set: {error}") from None
    return cls.from_dict(document)


def _operation(document: Any, tokens: list[str]) -> str:
    """Items of lists are replaced (new ones are added at "-"), members are set."""
    for token in tokens[:-1]:
        if isinstance(document, dict):
            document = document.get(token)
        elif isinstance(document, list) and token.isdecimal() and int(token) < len(document):
            document = document[int(token)]
    return "replace" if isinstance(document, list) and tokens[-1] != "-" else "add"
