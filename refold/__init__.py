"""A deterministic state-machine engine for LLM agents.

This package exports the names that a module needs; each is loaded on first use, so that `import refold` is fast.
Further names are in `refold.engine` (to extend the engine), `refold.traces`, `refold.tasks`, `refold.errors`,
`refold.testing`, and `refold.modules.agent` (the Agent).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .run_page import register_page_maker

if TYPE_CHECKING:
    # isort: off
    # fmt: off
    from .engine import (
        UNANSWERED, Action, ActionResult, AgentModule, BeamSearch, BestFirst, BestOfN, Decision, Engine,
        FinalResultCriteria, MaxRuntimeCriteria, MaxStepsCriteria, MaxTokensCriteria, MonteCarloTreeSearch,
        Observation, RunResult, RunStatus, RuntimeBudget, SelectBest, SelectFirst, StagnationCriteria, StateModel,
        StateSchema, StopReason, WaitRequest, ask, ask_sync, averify, bind, call_info, charge, effect, emit, new_id,
        now, perform, perform_sync, rng, run_child, start_child, verify, wait_child,
    )
    # fmt: on
    # isort: on
    from .errors import *
    from .errors import RefoldError
    from .tasks import CriterionResult, Task, TaskBudget, TaskResult
    from .traces import Trace, replay

__version__ = "0.1.0"

_ROOMS = ("errors", "traces", "tasks", "engine")
"""The packages that have the names; the last one imports the others."""

__all__ = [
    "UNANSWERED",
    "Action",
    "ActionResult",
    "AgentModule",
    "BeamSearch",
    "BestFirst",
    "BestOfN",
    "CriterionResult",
    "Decision",
    "Engine",
    "FinalResultCriteria",
    "MaxRuntimeCriteria",
    "MaxStepsCriteria",
    "MaxTokensCriteria",
    "MonteCarloTreeSearch",
    "Observation",
    "RefoldError",
    "RunResult",
    "RunStatus",
    "RuntimeBudget",
    "SelectBest",
    "SelectFirst",
    "StagnationCriteria",
    "StateModel",
    "StateSchema",
    "StopReason",
    "Task",
    "TaskBudget",
    "TaskResult",
    "Trace",
    "WaitRequest",
    "ask",
    "ask_sync",
    "averify",
    "bind",
    "call_info",
    "charge",
    "effect",
    "emit",
    "new_id",
    "now",
    "perform",
    "perform_sync",
    "replay",
    "rng",
    "run_child",
    "start_child",
    "verify",
    "wait_child",
]


if not TYPE_CHECKING:  # with a __getattr__, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Load a name on first use; errors of `refold.errors` are found, too."""
        for room in _ROOMS if name in __all__ else _ROOMS[:1]:
            module = import_module(f".{room}", __name__)
            if name in module.__all__:
                found = globals()[name] = getattr(module, name)
                return found
        raise AttributeError(f"module 'refold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


# Only this package may import both the traces and the viewer, which makes the page of `Trace.view`.
register_page_maker(lambda trace: import_module(".view.exported", __name__).page_of(trace))
