"""The state machine: state, decisions, the loop, the shell that runs it, effects, budgets, verifying, resuming."""

from .actions import run_actions
from .arguments import ArgumentError
from .asking import ask, ask_sync
from .beside import child_state, start_child, wait_child
from .bound import bind
from .branch import Branch, BranchStrategy, Node, Score
from .budget import RuntimeBudget
from .calls import CallInfo
from .child_result import ChildResult
from .clock import Clock, SystemClock
from .criteria import (
    FinalResultCriteria,
    MaxRuntimeCriteria,
    MaxStepsCriteria,
    MaxTokensCriteria,
    Meter,
    StagnationCriteria,
    StopCriteria,
)
from .decision import Action, ActionResult, Decision, Observation
from .divergence import Divergence
from .effects import call_info, charge, emit, follow_run, in_run, new_id, now, perform, perform_as, perform_sync, rng
from .engine import Engine
from .errors import (
    BudgetExceeded,
    CallClosed,
    ChildRunError,
    CircularValueError,
    DecisionError,
    DivergenceError,
    DraftExpiredError,
    EffectError,
    EffectNotAllowed,
    EngineOwnedFieldError,
    EngineUsageError,
    ExplorationError,
    FrozenStateError,
    ModuleDefinitionError,
    NoRunError,
    NoThreadError,
    ReduceError,
    RunClosed,
    RunNotCompletedError,
    StateDefinitionError,
    StateMigrationError,
    StateValueError,
    WaitAnsweredError,
)
from .inner import run_child
from .marks import effect
from .module import AgentModule, MakesModule, module_of
from .reasons import ENDINGS, Ending, RunStatus, StopReason
from .redact import Redactor, make_redactor
from .result import RunError, RunResult, WaitRequest
from .state import StateModel, StateSchema
from .strategies import BeamSearch, BestFirst, BestOfN, MonteCarloTreeSearch, SelectBest, SelectFirst
from .stream import RunStream
from .usage import RunUsage, Usage
from .verify import verify
from .waits import OnWait

__all__ = [
    "ENDINGS",
    "Action",
    "ActionResult",
    "AgentModule",
    "ArgumentError",
    "BeamSearch",
    "BestFirst",
    "BestOfN",
    "Branch",
    "BranchStrategy",
    "BudgetExceeded",
    "CallClosed",
    "CallInfo",
    "ChildResult",
    "ChildRunError",
    "CircularValueError",
    "Clock",
    "Decision",
    "DecisionError",
    "Divergence",
    "DivergenceError",
    "DraftExpiredError",
    "EffectError",
    "EffectNotAllowed",
    "Ending",
    "Engine",
    "EngineOwnedFieldError",
    "EngineUsageError",
    "ExplorationError",
    "FinalResultCriteria",
    "FrozenStateError",
    "MakesModule",
    "MaxRuntimeCriteria",
    "MaxStepsCriteria",
    "MaxTokensCriteria",
    "Meter",
    "ModuleDefinitionError",
    "MonteCarloTreeSearch",
    "NoRunError",
    "NoThreadError",
    "Node",
    "Observation",
    "OnWait",
    "Redactor",
    "ReduceError",
    "RunClosed",
    "RunError",
    "RunNotCompletedError",
    "RunResult",
    "RunStatus",
    "RunStream",
    "RunUsage",
    "RuntimeBudget",
    "Score",
    "SelectBest",
    "SelectFirst",
    "StagnationCriteria",
    "StateDefinitionError",
    "StateMigrationError",
    "StateModel",
    "StateSchema",
    "StateValueError",
    "StopCriteria",
    "StopReason",
    "SystemClock",
    "Usage",
    "WaitAnsweredError",
    "WaitRequest",
    "ask",
    "ask_sync",
    "bind",
    "call_info",
    "charge",
    "child_state",
    "effect",
    "emit",
    "follow_run",
    "in_run",
    "make_redactor",
    "module_of",
    "new_id",
    "now",
    "perform",
    "perform_as",
    "perform_sync",
    "rng",
    "run_actions",
    "run_child",
    "start_child",
    "verify",
    "wait_child",
]
