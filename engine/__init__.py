"""The engine: carries out the runs of a module, step by step.

It has the state, decisions, the loop and its runner, effects, budgets, replay and resuming.
"""

from .agent_module import AgentModule
from .children.calls import child_state, run_child, start_child, wait_child
from .children.child_result import ChildResult
from .concurrency.signals import run_blocking
from .concurrency.tasks import cancel_requests, is_cancelled, own_error
from .concurrency.threads import in_thread
from .effects.budget import RuntimeBudget, RunUsage, Usage
from .effects.call import CallInfo
from .effects.perform import (
    at_run_end,
    bind,
    call_info,
    charge,
    emit,
    follow_run,
    in_run,
    new_id,
    now,
    perform,
    perform_as,
    perform_sync,
    rng,
    trace_home,
)
from .effects.redaction import Redactor, make_redactor
from .effects.spec import effect, signature_of
from .effects.tools import run_actions
from .endings import ENDINGS, Ending, RunStatus, StopReason
from .engine import Engine, averify, verify
from .loop.decision import Action, ActionResult, Decision, Observation
from .loop.stop_criteria import (
    FinalResultCriteria,
    MaxRuntimeCriteria,
    MaxStepsCriteria,
    MaxTokensCriteria,
    Meter,
    StagnationCriteria,
    StopCriteria,
)
from .module import MakesModule, module_of
from .options import CommonOptions, EngineOptions
from .replay.divergence import Divergence
from .result import UNANSWERED, RunFailure, RunResult, WaitRequest
from .run.ask import ask, ask_sync
from .run.clock import Clock, SystemClock
from .run.stream import RunStream
from .run.waits import OnWait
from .state.model import StateModel, StateSchema
from .strategies.protocol import Branch, BranchStrategy, CandidateScore, Node, Score
from .strategies.strategies import BeamSearch, BestFirst, BestOfN, MonteCarloTreeSearch, SelectBest, SelectFirst

__all__ = [
    "ENDINGS",
    "UNANSWERED",
    "Action",
    "ActionResult",
    "AgentModule",
    "BeamSearch",
    "BestFirst",
    "BestOfN",
    "Branch",
    "BranchStrategy",
    "CallInfo",
    "CandidateScore",
    "ChildResult",
    "Clock",
    "CommonOptions",
    "Decision",
    "Divergence",
    "Ending",
    "Engine",
    "EngineOptions",
    "FinalResultCriteria",
    "MakesModule",
    "MaxRuntimeCriteria",
    "MaxStepsCriteria",
    "MaxTokensCriteria",
    "Meter",
    "MonteCarloTreeSearch",
    "Node",
    "Observation",
    "OnWait",
    "Redactor",
    "RunFailure",
    "RunResult",
    "RunStatus",
    "RunStream",
    "RunUsage",
    "RuntimeBudget",
    "Score",
    "SelectBest",
    "SelectFirst",
    "StagnationCriteria",
    "StateModel",
    "StateSchema",
    "StopCriteria",
    "StopReason",
    "SystemClock",
    "Usage",
    "WaitRequest",
    "ask",
    "ask_sync",
    "at_run_end",
    "averify",
    "bind",
    "call_info",
    "cancel_requests",
    "charge",
    "child_state",
    "effect",
    "emit",
    "follow_run",
    "in_run",
    "in_thread",
    "is_cancelled",
    "make_redactor",
    "module_of",
    "new_id",
    "now",
    "own_error",
    "perform",
    "perform_as",
    "perform_sync",
    "rng",
    "run_actions",
    "run_blocking",
    "run_child",
    "signature_of",
    "start_child",
    "trace_home",
    "verify",
    "wait_child",
]
