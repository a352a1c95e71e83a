"""Decides by its trace whether a child run is resumed."""

from ...endings import RunStatus, StopReason
from ...errors import ChildRunError, DivergenceError, RecordedValueError
from ...traces import Trace

BUDGETS = frozenset((StopReason.budget_time, StopReason.budget_tokens, StopReason.budget_cost))
"""The stop reasons of a child that may continue, since the budget may be larger now."""
_OVER = (RunStatus.completed, RunStatus.stopped, RunStatus.failed)
_RESUMABLE = (ChildRunError.__name__, DivergenceError.__name__, RecordedValueError.__name__)
"""Errors that say nothing about a run's work: its own child could not run, its code had changed, a value was lost."""


def has_ended(trace: Trace) -> bool:
    """Return whether a child run is not resumed with its parent."""
    if trace.status not in _OVER or (trace.end.get("error") or {}).get("type") in _RESUMABLE:
        return False
    return not (trace.status == RunStatus.stopped and trace.stop_reason in BUDGETS)
