"""The header of a trace.

It has all that another process needs to resume or verify the run.
"""

import json
import platform
from functools import lru_cache
from importlib import metadata
from typing import Any

from ....traces.file.record import FORMAT
from ...effects.budget import RuntimeBudget
from ...module import Module, arguments_of, import_path
from ...state.model import StateSchema


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions of the packages on which a run's behaviour depends."""
    return {
        "refold": metadata.version("refold"),
        "python": platform.python_version(),
        "pydantic": metadata.version("pydantic"),
    }


@lru_cache(maxsize=256)
def _schema(cls: type[StateSchema]) -> Any:
    return json.loads(json.dumps(cls.model_json_schema(by_alias=False)))


def header_of(
    run_id: str,
    module: Module[Any],
    task: dict[str, Any],
    budget: RuntimeBudget,
    seed: int,
    parent: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a header record's members; `task` is the task's JSON form."""
    state, arguments = module.state_class, arguments_of(module)
    return {
        "format": FORMAT,
        "run_id": run_id,
        "parent": parent,
        "versions": versions(),
        "module": import_path(type(module)),
        **({"arguments": list(arguments)} if arguments else {}),
        "state": import_path(state),
        "schema": _schema(state),
        "schema_version": state.model_fields["schema_version"].default,
        "task": task,
        "budget": budget.to_dict(),
        "seed": seed,
    }
