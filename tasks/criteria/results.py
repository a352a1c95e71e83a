"""The result of a task, with a verdict for each criterion."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class CriterionResult(BaseModel):
    """The verdict on one criterion: passed, failed, or None if not evaluated."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    criterion: str
    passed: bool | None
    evidence: str = ""
    """The facts behind the verdict, or the reason why there is none."""


class TaskResult(BaseModel):
    """The result of a task; `reason` explains `success` in a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    task_id: str
    success: bool
    """True if the run completed and no criterion failed. A criterion that was not evaluated does not count."""
    stop_reason: str
    final_result: str | None
    criteria: list[CriterionResult] = Field(default_factory=list)
    reason: str = ""
    artifacts: dict[str, Any] = Field(default_factory=dict)
    """The task's resources of kind `artifact`: path to {"exists": bool, "kind": "file" | "dir" | None}."""
    metrics: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
