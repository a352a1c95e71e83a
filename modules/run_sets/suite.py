"""Suite files: a set of runs as YAML.

Problems of a file are reported with their lines.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from ...tasks import Task, TaskBudget, load_tasks
from ...tasks.files.document import Document, UnreadableError
from ...tasks.files.yaml_documents import parse_yaml
from ...tasks.issues import located_issues
from .errors import SuiteFileError

Count = Field(default=None, ge=1)
Amount = Field(default=None, gt=0, allow_inf_nan=False)
_Problem = tuple[int | None, str | None, str]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuiteLimits(_Part):
    """The limits of a suite; see `SetLimits`."""

    concurrency: StrictInt | None = Count
    requests_per_minute: float | None = Amount
    tokens_per_minute: float | None = Amount
    max_cost_usd: float | None = Amount
    attempts: StrictInt | None = Count


class Suite(_Part):
    """The content of a suite file.

    `tasks` holds the tasks; in the file, they are a list, or the path of a file of tasks, relative to the suite's
    folder. `where` is a folder, relative to the current one, or the URL of a store.
    """

    name: StrictStr = Field(default="", min_length=1)
    module: StrictStr | None = None
    """`package.module:NAME` or `FILE.py:NAME` of an AgentModule."""
    agent: StrictStr | None = None
    """The same for an Agent, or for a function that makes one."""
    tasks: Any = None
    where: StrictStr | None = None
    budget: TaskBudget = TaskBudget()
    """The budget of each run; a task's own fields take precedence."""
    limits: SuiteLimits = SuiteLimits()
    retry_on: tuple[StrictStr, ...] = ()
    """Names of classes of errors that count as failures of the machine, such as `my_agents:SearchBusy`."""
    executor: Literal["inline", "local", "ray"] = "local"
    processes: StrictInt = Field(default=1, ge=1)
    seed: StrictInt | None = None

    @field_validator("name")
    @classmethod
    def _is_one_name(cls, name: str) -> str:
        if name in (".", "..") or any(mark in name for mark in "/\\\0"):
            raise PydanticCustomError("name", "must be the name of a folder, not a path; `where` takes a path")
        return name

    @property
    def target(self) -> str:
        """The path of the module or Agent."""
        return self.module or self.agent or ""


def load_suite(path: str | Path) -> Suite:
    """Return the suite of a YAML file, with its tasks loaded.

    Names in the file are not imported.

    Raises:
        SuiteFileError: the file cannot be read or has problems; the error lists all of them, with their lines.
        TaskFileError: the file of tasks has problems.
    """
    path = Path(path)
    document = _document(path)
    if not isinstance(document.value, dict):
        raise SuiteFileError(path, [(1, None, "must be a mapping with `module` or `agent`, and `tasks`")])
    if "objective" in document.value and "tasks" not in document.value:
        said = f"is a task, not a suite of tasks: run it with `refold run {path}`, or name it as `tasks` of a suite"
        raise SuiteFileError(path, [(1, None, said)])
    try:
        suite = Suite.model_validate(document.value)
    except ValidationError as error:
        problems: list[_Problem] = [
            (document.line_of(at), issue.field or None, issue.message) for at, issue in located_issues(error, Suite)
        ]
        raise SuiteFileError(path, problems) from None
    if (suite.module is None) == (suite.agent is None):
        both = suite.module is not None
        line = document.line_of(("agent",)) if both else 1
        raise SuiteFileError(path, [(line, None, f"names {'both' if both else 'neither'} module and agent: name one")])
    return suite.model_copy(update={"name": suite.name or path.stem, "tasks": _tasks(path, document, suite.tasks)})


def _document(path: Path) -> Document:
    try:
        documents = list(parse_yaml(path.read_text(encoding="utf-8-sig")))
    except FileNotFoundError:
        raise SuiteFileError(path, [(None, None, "no such file")]) from None
    except UnicodeDecodeError:
        raise SuiteFileError(path, [(None, None, "is not UTF-8 text: save the file as UTF-8")]) from None
    except OSError as error:
        raise SuiteFileError(path, [(None, None, f"cannot be read: {error.strerror or error}")]) from None
    except UnreadableError as error:
        raise SuiteFileError(path, [(error.line, error.field, error.message)]) from None
    if len(documents) != 1:
        raise SuiteFileError(path, [(None, None, f"holds {len(documents)} YAML documents; it must hold one")])
    return documents[0]


def _tasks(path: Path, document: Document, given: Any) -> list[Task]:
    line = document.line_of(("tasks",)) if "tasks" in document.value else 1
    if isinstance(given, str):
        return load_tasks(path.parent / given)
    if not isinstance(given, list) or not given:
        message = "must be the path of a task file, or a list of tasks"
        raise SuiteFileError(path, [(line, "tasks", message)])
    tasks: list[Task] = []
    problems: list[_Problem] = []
    for index, value in enumerate(given):
        try:
            tasks.append(Task.model_validate({"objective": value} if isinstance(value, str) else value))
        except ValidationError as error:
            for at, issue in located_issues(error, Task):
                field = f"tasks[{index}]" + (f".{issue.field}" if issue.field else "")
                problems.append((document.line_of(("tasks", index, *at)), field, issue.message))
    if problems:
        raise SuiteFileError(path, problems)
    return tasks
