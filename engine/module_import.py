"""Importing a module for the sake of a trace starts no run: a script without a `__main__` guard says so instead."""

from contextvars import ContextVar

from .errors import EngineUsageError

importing: ContextVar[str | None] = ContextVar("refold_importing", default=None)
"""The module that is being imported for the sake of a trace."""


def refuse_while_importing() -> None:
    """Raises EngineUsageError where a run would start because its module is imported."""
    if (script := importing.get()) is not None:
        raise EngineUsageError(
            f'{script} starts a run while it is imported; put what starts it under `if __name__ == "__main__":`'
        )
