"""Errors of evaluations: datasets, evaluation files and scorers."""

from collections.abc import Sequence
from pathlib import Path

from ...tasks.errors import FileProblem
from ...traces.errors import DefinitionError, UsageError


class DatasetError(DefinitionError):
    """A dataset cannot be used.

    The message has a line for each problem.

    Attributes:
        source: the file, or a name for rows from Python.
        problems: line (or None), field (or None) and message of each problem.
    """

    def __init__(self, source: Path | str, problems: Sequence[FileProblem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(_told(source, problem) for problem in problems))


class EvaluationFileError(DatasetError):
    """An evaluation file cannot be used.

    The message has a line for each problem.
    """


class EvaluationError(UsageError):
    """An evaluation cannot be made, read or compared with these arguments."""


def _told(source: Path | str, problem: FileProblem) -> str:
    place = f"{source}:{problem.line}" if problem.line is not None else str(source)
    return ": ".join([place, *([problem.field] if problem.field else []), problem.message])
