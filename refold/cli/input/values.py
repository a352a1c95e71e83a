"""Values given as text: `--input KEY=VALUE`, `--value JSON`, and which tasks a command line means."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...tasks import Task, load_tasks
from ..errors import InputError

TASK_FILES = (".yaml", ".yml", ".json", ".jsonl")
_NOTHING: Any = ...


def is_task_file(text: str) -> bool:
    """Whether the text names a task file, there or not."""
    return text.lower().endswith(TASK_FILES)


def read_inputs(given: Sequence[str]) -> dict[str, Any]:
    """The inputs in `KEY=VALUE` texts: a value that is JSON is that, any other is the text itself."""
    inputs: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f"--input {text!r} is not KEY=VALUE; write for example --input size=3 or --input name=Ada")
        if key in inputs:
            raise InputError(f"--input {key} is given twice; give it once, a list as --input '{key}=[1, 2]'")
        try:
            inputs[key] = strict_json(value)
        except ValueError:
            inputs[key] = value
    return inputs


def read_json(text: str, option: str) -> Any:
    """The JSON value of an option; raises InputError for anything else."""
    try:
        return strict_json(text)
    except ValueError as error:
        raise InputError(f"{option} takes JSON: {error} in {text!r}; put text in quotes: {option} '\"text\"'") from None


def read_tasks(
    target: str, objective: str | None, only: str | None, inputs: dict[str, Any], budget: dict[str, Any]
) -> list[Task]:
    """The tasks that a command line means, with its inputs and budget over theirs."""
    if is_task_file(target):
        if objective is not None:
            raise InputError(f"{target} holds its own objective; leave out {objective!r}")
        tasks = load_tasks(target)
        if only is not None:
            found = [task for task in tasks if task.id == only]
            if not found:
                raise InputError(f"{target} has no task {only!r}; its tasks are {', '.join(t.id for t in tasks)}")
            tasks = found
    else:
        if objective is None:
            raise InputError(f'say what {target} is to do: refold run {target} "objective"')
        if is_task_file(objective) and Path(objective).exists():
            raise InputError(f"to run a task file write: refold run {objective} --module {target}")
        if only is not None:
            raise InputError("--task picks a task of a file; name the file instead of MODULE:CLASS")
        tasks = [Task.from_dict({"objective": objective, "inputs": inputs})]
    return [_with(task, inputs, budget) for task in tasks]


def _with(task: Task, inputs: dict[str, Any], budget: dict[str, Any]) -> Task:
    if not inputs and not budget:
        return task
    doc = task.to_dict()
    doc["inputs"] |= inputs
    doc["budget"] |= budget
    return Task.from_dict(doc)


def strict_json(text: str) -> Any:
    """JSON as RFC 8259 has it: without NaN and infinities. Raises ValueError for anything else."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def read_text_or_file(text: str | None, option: str) -> str | None:
    """The text of an option, or of the file that `@FILE` names; raises InputError where it can't be read."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{option} {text}: {told}") from None
