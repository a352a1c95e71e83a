"""Errors of tasks, their files and their environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .families import TaskError


class Issue(Protocol):
    """One thing wrong with a task or its environment, as these errors see a `refold.tasks.TaskValidationIssue`."""

    @property
    def code(self) -> str:
        """A stable name for programs, such as `TASK_RESOURCE_MISSING`."""

    @property
    def message(self) -> str:
        """The problem in words."""

    @property
    def field(self) -> str:
        """The path of the field in the task document, empty for the whole document."""

    @property
    def details(self) -> dict[str, Any]:
        """The facts as JSON values."""

    @property
    def place(self) -> str:
        """The field with a colon, or nothing for the whole document."""


class TaskInvalidError(TaskError):
    """A document that is not a task; `issues` says everything that is wrong with it, each with a code and a field."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = list(issues)
        super().__init__("not a valid task: " + "; ".join(f"{issue.place}{issue.message}" for issue in self.issues))


@dataclass(frozen=True)
class FileProblem:
    """One thing wrong in a task file: its 1-based `line` and its `field`, each None where it has none."""

    line: int | None
    field: str | None
    message: str


class TaskFileError(TaskError):
    """A task file that can't be used; `line` and `field` are those of the first of its `problems`.

    The message has one line a problem: `tasks.yaml:7: budget.max_steps: must be at least 1 (got 0)`.
    """

    def __init__(self, path: Path, problems: Sequence[FileProblem]) -> None:
        self.path = path
        self.problems = list(problems)
        self.line = self.problems[0].line
        self.field = self.problems[0].field
        super().__init__("\n".join(self._line(problem) for problem in self.problems))

    def _line(self, problem: FileProblem) -> str:
        place = [str(self.path) if problem.line is None else f"{self.path}:{problem.line}"]
        return ": ".join([*place, *([problem.field] if problem.field else []), problem.message])


class EnvironmentMismatchError(TaskError):
    """The environment that a task asks for can't be had; `code` is the first issue's."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = list(issues)
        self.code = self.issues[0].code
        super().__init__("; ".join(f"{issue.place}{issue.message}" for issue in self.issues))


class OutsideWorkspaceError(TaskError):
    """A path that leads out of the workspace, by `..`, as an absolute path, or through a symbolic link."""

    def __init__(self, path: str, root: Path, why: str) -> None:
        self.path = path
        self.root = root
        super().__init__(f"{path!r} {why}; use a path inside {root}")


class NoEnvironmentError(TaskError):
    """`current_environment()` was called where no environment is open."""

    def __init__(self) -> None:
        super().__init__(
            "no environment is open here: give the task an env_spec (for example EnvSpec(type='scratch')), "
            "or enter `use_environment(environment)` around the call"
        )


class EnvironmentNotOpenError(TaskError):
    """An environment was used before it was opened or after it was closed; a command it ran then was killed."""

    def __init__(self, type_: str, why: str) -> None:
        self.type = type_
        super().__init__(f"the {type_!r} environment {why}")


class NotForkableError(TaskError):
    """`fork()` of an environment without the capability "fork"."""

    def __init__(self, type_: str) -> None:
        self.type = type_
        super().__init__(
            f"a {type_!r} environment can't be forked: its files are the real ones; "
            "use EnvSpec(type='scratch'), whose folder is a copy that can be copied again"
        )


_SHOWN = 300
"""How many characters of a command an error repeats: a model may have written megabytes."""


class CommandError(TaskError):
    """A command that could not be started; what it does once started is told by its `ExecResult`."""

    def __init__(self, argv: Sequence[str], reason: str) -> None:
        self.argv = list(argv)
        self.reason = reason
        shown = repr(self.argv)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}... ({len(shown) - _SHOWN} more characters)"
        super().__init__(f"could not start {shown}: {reason}")


class CopyRefusedError(TaskError):
    """A folder cannot be copied: a link leads out of the folder, or an entry is neither a file nor a folder."""
