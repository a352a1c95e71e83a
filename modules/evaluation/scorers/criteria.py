"""The success criteria of the task, as the run evaluated them."""

from collections.abc import Mapping
from typing import Any

from ..errors import EvaluationError
from .score import Score
from .scorer import RunScorer


def success_criteria(*, name: str = "criteria") -> RunScorer:
    """Score the share of the task's success criteria that passed.

    The run passes if all criteria do. A task without criteria passes if its run completed. A criterion that was not
    evaluated is an error of the scorer.
    """

    def score(task_result: Mapping[str, Any], status: str) -> Score:
        criteria = task_result.get("criteria") or []
        if not criteria:
            return Score(float(status == "completed"), status == "completed", f"the run is {status}")
        unknown = [each["criterion"] for each in criteria if each.get("passed") is None]
        if unknown:
            raise EvaluationError(f"success criteria were not evaluated: {'; '.join(unknown)}")
        passed = sum(bool(each["passed"]) for each in criteria)
        failed = [f"{each['criterion']}: {each.get('evidence', '')}" for each in criteria if not each["passed"]]
        whole = passed == len(criteria) and bool(task_result.get("success"))
        return Score(passed / len(criteria), whole, "; ".join(failed) or (f"the run is {status}" if not whole else ""))

    return RunScorer(score, name=name)
