"""All errors of refold, in eight families.

Each family says who is to blame and what to do.

| family | who is to blame | what to do |
|---|---|---|
| `DefinitionError` | the author of a class, tool, skill, capability or configuration | correct the definition |
| `UsageError` | the caller | correct the call, its arguments, or where it is made |
| `StateError` | the author of a hook, most often of `reduce` | correct the hook; its step is not committed |
| `ExternalError` | the world: a provider, server, program, package, person | retry, or handle it in `decide` |
| `RunAbortedError` | nobody: the run cannot continue | clean up and let it pass; resume or fork later |
| `TraceError` | the file of a trace | look at the file: another writer, a full disk, a corrupt line |
| `TaskError` | the task: its document, environment, workspace, or run | correct the task |
| `DivergenceError` | the code, which has changed, or depends on what is not recorded | restore the code, or fork |

All derive from `RefoldError`. The errors of the core are here; the errors of a module (`refold.modules.mcp`, …) are
in that module, and belong to the same families. Every error's name ends in `Error`. No other name does, except the
Agent's events that dreadnode has named so.

`EffectError` is not a family: code that expects a failed effect should not catch a misuse of the engine.
"""

from .engine.errors import (
    ArgumentError,
    BudgetExceededError,
    CallClosedError,
    ChildRunError,
    CircularValueError,
    DecisionError,
    DraftExpiredError,
    EffectError,
    EffectNotAllowedError,
    EngineOwnedFieldError,
    EngineUsageError,
    ExplorationError,
    FrozenStateError,
    ModuleDefinitionError,
    NoRunError,
    NoThreadError,
    RecordedValueError,
    ReduceError,
    RunClosedError,
    RunNotCompletedError,
    StateDefinitionError,
    StateMigrationError,
    StateValueError,
    WaitAnsweredError,
)
from .tasks.errors import (
    CommandError,
    CopyRefusedError,
    EnvironmentMismatchError,
    EnvironmentNotOpenError,
    FilesLostError,
    NoEnvironmentError,
    NotForkableError,
    OutsideWorkspaceError,
    TaskFileError,
    TaskInvalidError,
)
from .traces.errors import (
    DefinitionError,
    DivergenceError,
    ExportError,
    ExternalError,
    ExtraMissingError,
    MissingMemberError,
    NotATraceError,
    PatchError,
    RecordError,
    RefoldError,
    RunAbortedError,
    StateError,
    StoreError,
    TaskError,
    TraceCorruptError,
    TraceError,
    TraceExistsError,
    TraceFormatError,
    TraceLockedError,
    TraceNotFoundError,
    TraceTakenError,
    TraceWriteError,
    UsageError,
)

__all__ = [
    "ArgumentError",
    "BudgetExceededError",
    "CallClosedError",
    "ChildRunError",
    "CircularValueError",
    "CommandError",
    "CopyRefusedError",
    "DecisionError",
    "DefinitionError",
    "DivergenceError",
    "DraftExpiredError",
    "EffectError",
    "EffectNotAllowedError",
    "EngineOwnedFieldError",
    "EngineUsageError",
    "EnvironmentMismatchError",
    "EnvironmentNotOpenError",
    "ExplorationError",
    "ExportError",
    "ExternalError",
    "ExtraMissingError",
    "FilesLostError",
    "FrozenStateError",
    "MissingMemberError",
    "ModuleDefinitionError",
    "NoEnvironmentError",
    "NoRunError",
    "NoThreadError",
    "NotATraceError",
    "NotForkableError",
    "OutsideWorkspaceError",
    "PatchError",
    "RecordError",
    "RecordedValueError",
    "ReduceError",
    "RefoldError",
    "RunAbortedError",
    "RunClosedError",
    "RunNotCompletedError",
    "StateDefinitionError",
    "StateError",
    "StateMigrationError",
    "StateValueError",
    "StoreError",
    "TaskError",
    "TaskFileError",
    "TaskInvalidError",
    "TraceCorruptError",
    "TraceError",
    "TraceExistsError",
    "TraceFormatError",
    "TraceLockedError",
    "TraceNotFoundError",
    "TraceTakenError",
    "TraceWriteError",
    "UsageError",
    "WaitAnsweredError",
]
