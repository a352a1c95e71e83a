"""A deterministic state-machine engine for LLM agents.

This package exports the names that a module needs; each is loaded on first use, so that `import refold` is fast.
Further names are in `refold.engine` (to extend the engine), `refold.traces`, `refold.tasks`, `refold.errors`,
`refold.testing`, and `refold.modules.agent` (the Agent).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .run_page import register_page_maker

if TYPE_CHECKING:
    from .engine import (
        UNANSWERED as UNANSWERED,
    )
    from .engine import (
        Action as Action,
    )
    from .engine import (
        ActionResult as ActionResult,
    )
    from .engine import (
        AgentModule as AgentModule,
    )
    from .engine import (
        BeamSearch as BeamSearch,
    )
    from .engine import (
        BestFirst as BestFirst,
    )
    from .engine import (
        BestOfN as BestOfN,
    )
    from .engine import (
        Decision as Decision,
    )
    from .engine import (
        Engine as Engine,
    )
    from .engine import (
        FinalResultCriteria as FinalResultCriteria,
    )
    from .engine import (
        MaxRuntimeCriteria as MaxRuntimeCriteria,
    )
    from .engine import (
        MaxStepsCriteria as MaxStepsCriteria,
    )
    from .engine import (
        MaxTokensCriteria as MaxTokensCriteria,
    )
    from .engine import (
        MonteCarloTreeSearch as MonteCarloTreeSearch,
    )
    from .engine import (
        Observation as Observation,
    )
    from .engine import (
        RunResult as RunResult,
    )
    from .engine import (
        RunStatus as RunStatus,
    )
    from .engine import (
        RuntimeBudget as RuntimeBudget,
    )
    from .engine import (
        SelectBest as SelectBest,
    )
    from .engine import (
        SelectFirst as SelectFirst,
    )
    from .engine import (
        StagnationCriteria as StagnationCriteria,
    )
    from .engine import (
        StateModel as StateModel,
    )
    from .engine import (
        StateSchema as StateSchema,
    )
    from .engine import (
        StopReason as StopReason,
    )
    from .engine import (
        WaitRequest as WaitRequest,
    )
    from .engine import (
        ask as ask,
    )
    from .engine import (
        ask_sync as ask_sync,
    )
    from .engine import (
        averify as averify,
    )
    from .engine import (
        bind as bind,
    )
    from .engine import (
        call_info as call_info,
    )
    from .engine import (
        charge as charge,
    )
    from .engine import (
        effect as effect,
    )
    from .engine import (
        emit as emit,
    )
    from .engine import (
        new_id as new_id,
    )
    from .engine import (
        now as now,
    )
    from .engine import (
        perform as perform,
    )
    from .engine import (
        perform_sync as perform_sync,
    )
    from .engine import (
        rng as rng,
    )
    from .engine import (
        run_child as run_child,
    )
    from .engine import (
        start_child as start_child,
    )
    from .engine import (
        verify as verify,
    )
    from .engine import (
        wait_child as wait_child,
    )
    from .errors import *
    from .errors import RefoldError as RefoldError
    from .tasks import CriterionResult as CriterionResult
    from .tasks import Task as Task
    from .tasks import TaskBudget as TaskBudget
    from .tasks import TaskResult as TaskResult
    from .traces import Trace as Trace
    from .traces import replay as replay

__version__ = "0.1.0"

_ROOMS = {
    "engine": """
        UNANSWERED averify
        Action ActionResult AgentModule BeamSearch BestFirst BestOfN Decision Engine FinalResultCriteria
        MaxRuntimeCriteria MaxStepsCriteria MaxTokensCriteria MonteCarloTreeSearch Observation RunResult
        RunStatus RuntimeBudget SelectBest SelectFirst StagnationCriteria StateModel StateSchema StopReason
        WaitRequest ask ask_sync bind call_info charge effect emit new_id now perform perform_sync rng
        run_child start_child verify wait_child
    """,
    "errors": """
        RefoldError
    """,
    "tasks": """
        CriterionResult Task TaskBudget TaskResult
    """,
    "traces": """
        Trace replay
    """,
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
_FORMERLY = {"EffectNotAllowed": "EffectNotAllowedError", "RunClosed": "RunClosedError"}

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
        room = _ROOM_OF.get(name)
        if room is None:
            errors = import_module(".errors", __name__)
            name = _FORMERLY.get(name, name)
            if name not in errors.__all__:
                raise AttributeError(f"module 'refold' has no attribute {name!r}")
            return getattr(errors, name)
        found = globals()[name] = getattr(import_module(f".{room}", __name__), name)
        return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


# Only this package may import both the traces and the viewer, which makes the page of `Trace.view`.
register_page_maker(lambda trace: import_module(".view.exported", __name__).page_of(trace))
