"""Errors of sets and of suite files."""

from collections.abc import Sequence
from pathlib import Path

from ...traces.errors import DefinitionError, UsageError


def first_error(error: BaseException) -> BaseException:
    """Return the first error of a task group without the group.

    Callers do not know that a set uses task groups.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class SetMismatchError(UsageError):
    """The command does not fit the set; `keys` are the differing tasks."""

    def __init__(self, message: str, keys: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


class SuiteFileError(DefinitionError):
    """A suite file cannot be used.

    The message has a line for each problem.

    Attributes:
        path: the file.
        problems: line number (or None), field (or None) and message of each problem.
    """

    def __init__(self, path: Path, problems: Sequence[tuple[int | None, str | None, str]]) -> None:
        self.path = path
        self.problems = tuple(problems)
        lines = []
        for line, field, message in self.problems:
            place = f"{path}:{line}" if line is not None else str(path)
            lines.append(f"{place}: {f'{field}: ' if field else ''}{message}")
        super().__init__("\n".join(lines))
