"""Rows with required columns, which all loaders share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....tasks import Task
from ....tasks.errors import FileProblem, TaskFileError
from ..datasets.dataset import Row, file_name
from ..datasets.files import PlacedRow


def required(path: Path, placed: Sequence[PlacedRow], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows as mappings that have all required columns.

    Raises TaskFileError with the line of each row that lacks a column or is not a mapping.
    """
    problems: list[FileProblem] = []
    rows: list[dict[str, Any]] = []
    for line, row in placed:
        if not isinstance(row, Mapping):
            problems.append(FileProblem(line, None, f"a row must be a mapping, got {type(row).__name__}"))
            continue
        missing = [name for name in columns if row.get(name) is None]
        if missing:
            problems.append(FileProblem(line, missing[0], "this column is missing: is it another benchmark's file?"))
        rows.append(dict(row))
    if problems:
        raise TaskFileError(path, problems)
    return rows


def row_of(identity: str, objective: str, target: Any, columns: Mapping[str, Any], **task: Any) -> Row:
    """Return a row of a benchmark."""
    made = Task.model_validate({"id": file_name(identity), "objective": objective, **task})
    return Row(identity, made, target, {name: value for name, value in columns.items() if value is not None})
