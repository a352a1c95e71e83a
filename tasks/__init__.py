"""Tasks: their files, resources, environments, success criteria and results.

A `Task` is data: it is loaded, checked before the run (`check_task`) and written to the trace's header. An
`Environment` is the folder in which a run's tools and commands work; `open_environment` opens the environment of a
task's `EnvSpec`. Nothing here knows the engine or traces.
"""

from ..errors.tasks import FileProblem
from .criteria.evaluation import evaluate_task
from .criteria.evaluators import evaluator, evaluator_names, register_evaluator
from .criteria.results import CriterionResult, TaskResult
from .criteria.run_view import Evaluator, RunView, Verdict
from .environments.environment import (
    Environment,
    ExecResult,
    _current_environment,
    current_environment,
    use_environment,
)
from .environments.folder import FolderEnvironment, HostEnvironment
from .environments.open_environment import open_environment
from .environments.registry import (
    EnvironmentFactory,
    check_environment,
    create_environment,
    environment_types,
    register_environment,
)
from .environments.scratch import ScratchEnvironment
from .files.task_files import load_task, load_tasks
from .issues import TaskValidationIssue
from .preflight import check_task
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
