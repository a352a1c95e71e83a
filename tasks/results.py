"""What came of a task: each criterion's verdict and the whole's, with the reason."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class CriterionResult(BaseModel):
    """The verdict on one success criterion: passed, not passed, or None where it was not evaluated."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    criterion: str
    passed: bool | None
    evidence: str = ""
    """What the verdict rests on; for None, why there is no verdict."""


class TaskResult(BaseModel):
    """What came of a task; `reason` tells in a sentence why `success` is what it is."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    task_id: str
    success: bool
    """The run completed and no criterion failed. A criterion that was not evaluated is not counted as passed."""
    stop_reason: str
    final_result: str | None
    criteria: list[CriterionResult] = Field(default_factory=list)
    reason: str = ""
    artifacts: dict[str, Any] = Field(default_factory=dict)
    """The task's resources of kind `artifact`: path to {"exists": bool, "kind": "file" | "dir" | None}."""
    metrics: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
