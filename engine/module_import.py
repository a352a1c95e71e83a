"""Refuses to start a run while refold imports its module.

Some commands import the module of a trace. A script without a `__main__` guard would then start its run again.
"""

from contextvars import ContextVar

from ..errors import EngineUsageError

importing: ContextVar[str | None] = ContextVar("refold_importing", default=None)
"""The name of the module that is being imported for a trace, otherwise None."""


def refuse_while_importing() -> None:
    """Raise EngineUsageError if a module is being imported for a trace."""
    if (script := importing.get()) is not None:
        raise EngineUsageError(
            f'{script} starts a run while it is imported; put what starts it under `if __name__ == "__main__":`'
        )
