"""The error of evaluations."""

from ...traces.errors import UsageError


class EvaluationError(UsageError):
    """An evaluation cannot be made, read or compared with these arguments."""
