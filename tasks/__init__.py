"""Tasks: their files, resources, environments, success criteria and results.

Two ideas carry the room. A `Task` is data: it is loaded, checked before the run (`check_task`) and written to the
trace's header. An `Environment` is the folder in which a run's tools and commands work; `open_environment` opens the
one that a task's `EnvSpec` asks for. Nothing here knows the engine or traces.
"""

from ..errors.tasks import FileProblem
from .environment import Environment, ExecResult, _current_environment, current_environment, use_environment
from .evaluation import evaluate_task
from .evaluators import evaluator, evaluator_names, register_evaluator
from .folder import FolderEnvironment, HostEnvironment
from .issues import TaskValidationIssue
from .loading import load_task, load_tasks
from .opening import open_environment
from .preflight import check_task
from .registry import (
    EnvironmentFactory,
    check_environment,
    create_environment,
    environment_types,
    register_environment,
)
from .results import CriterionResult, TaskResult
from .run_view import Evaluator, RunView, Verdict
from .scratch import ScratchEnvironment
from .task import EnvSpec, Task, TaskBudget, TaskResource, as_task
from .workspace import workspace_of

__all__ = [
    "CriterionResult",
    "EnvSpec",
    "Environment",
    "EnvironmentFactory",
    "Evaluator",
    "ExecResult",
    "FileProblem",
    "FolderEnvironment",
    "HostEnvironment",
    "RunView",
    "ScratchEnvironment",
    "Task",
    "TaskBudget",
    "TaskResource",
    "TaskResult",
    "TaskValidationIssue",
    "Verdict",
    "_current_environment",
    "as_task",
    "check_environment",
    "check_task",
    "create_environment",
    "current_environment",
    "environment_types",
    "evaluate_task",
    "evaluator",
    "evaluator_names",
    "load_task",
    "load_tasks",
    "open_environment",
    "register_environment",
    "register_evaluator",
    "use_environment",
    "workspace_of",
]
