"""A deterministic state-machine engine for LLM agents.

Every public name is importable from here; each is loaded on its first use, so that `import refold` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import *
    from .errors import *
    from .tasks import *
    from .traces import *

__version__ = "0.1.0"

_ROOMS = {
    "errors": """
        ArgumentError BudgetExceededError CallClosedError ChildRunError CircularValueError CommandError
        CopyRefusedError DecisionError DefinitionError DivergenceError DraftExpiredError EffectError
        EffectNotAllowedError EngineOwnedFieldError EngineUsageError EnvironmentMismatchError
        EnvironmentNotOpenError ExplorationError ExternalError FrozenStateError MissingMemberError
        ModuleDefinitionError NoEnvironmentError NoRunError NoThreadError NotATraceError NotForkableError
        OutsideWorkspaceError PatchError RecordError ReduceError RefoldError RunAbortedError RunClosedError
        RunNotCompletedError StateDefinitionError StateError StateMigrationError StateValueError TaskError
        TaskFileError TaskInvalidError TraceCorruptError TraceError TraceExistsError TraceLockedError
        TraceNotFoundError TraceWriteError UsageError WaitAnsweredError
    """,
    "engine": """
        Action ActionResult AgentModule BeamSearch BestFirst BestOfN Branch BranchStrategy CallInfo
        ChildResult Clock Decision Divergence ENDINGS Ending Engine FinalResultCriteria MaxRuntimeCriteria
        MakesModule MaxStepsCriteria MaxTokensCriteria Meter MonteCarloTreeSearch Node Observation OnWait
        Redactor RunFailure RunResult RunStatus RunStream RunUsage RuntimeBudget Score SelectBest SelectFirst
        StagnationCriteria StateModel StateSchema StopCriteria StopReason SystemClock Usage WaitRequest ask
        ask_sync bind call_info charge child_state effect emit follow_run in_run make_redactor module_of
        new_id now perform perform_as perform_sync rng run_actions run_child start_child verify wait_child
    """,
    "tasks": """
        CriterionResult EnvSpec Environment EnvironmentFactory Evaluator ExecResult FileProblem
        FolderEnvironment HostEnvironment RunView ScratchEnvironment Task TaskBudget TaskResource TaskResult
        TaskValidationIssue Verdict as_task check_environment check_task create_environment
        current_environment environment_types evaluate_task evaluator evaluator_names load_task load_tasks
        open_environment register_environment register_evaluator use_environment workspace_of
    """,
    "traces": """
        ABSENT Blame Change Difference Durability Effect FORMAT Family Follower Kin KinBranch KinCandidate
        PhaseDiff Record Repair Replay SUFFIX Step Trace TraceDiff TraceSummary TraceWriter apply_patch
        blob_reference branches_folder changes_of copy_json escape family is_blob join_pointer list_traces
        patched repair replay same_json split_pointer summarize
    """,
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted(_ROOM_OF)


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'refold' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{room}", __name__), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
