"""An evaluator's view of a run, and its verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..environments.environment import Environment
from ..task import Task
from .results import CriterionResult


@dataclass(frozen=True)
class RunView:
    """An ended run, as an evaluator sees it.

    `environment` is still open, or None if the run had none.
    """

    task: Task
    status: str
    """"completed", "stopped", "failed", …: `RunStatus` as text."""
    stop_reason: str
    final_result: str | None
    state: Any = None
    """The final state: a `StateSchema`, or a JSON document."""
    environment: Environment | None = None


Verdict = CriterionResult | bool | None
Evaluator = Callable[[str, RunView], Verdict | Awaitable[Verdict]]
"""A function from a criterion's argument (the text after `"name:"`, stripped) and the run to a verdict.

None means that it cannot decide. A sync evaluator is called in a worker thread.
"""
