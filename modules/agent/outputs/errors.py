"""Errors of typed output."""

from ....engine.errors import RunNotCompletedError
from ....traces.errors import DefinitionError


class OutputDefinitionError(DefinitionError, TypeError):
    """An `output_type` cannot be requested, such as one without a JSON Schema."""


class NoOutputError(RunNotCompletedError):
    """A run ended without an output; `result` is its trajectory."""


class OutputRefusedError(ValueError):
    """An answer does not fit the output type; the model reads why."""
