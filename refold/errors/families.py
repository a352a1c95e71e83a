"""The base of all errors, and the eight families in `refold.errors`."""

from typing import Any

CAUSES = (
    "Either the code has changed since, or it depends on something that is not recorded: the order of a set, hash(), "
    "the clock, random numbers, a file, an attribute of the module."
)
"""What may be behind a divergence."""


class RefoldError(Exception):
    """An action that refold refused or could not carry out.

    The message says what is wrong, where, and what to do next. Subclasses carry the facts as attributes (`path`,
    `step`, `expected`, …) so that code need not parse the message.
    """


class DefinitionError(RefoldError):
    """A class, tool, skill, capability or configuration has an invalid definition."""


class UsageError(RefoldError):
    """A call is wrong, or at the wrong time or place.

    Correct the code that makes the call.
    """


class StateError(RefoldError):
    """A hook set an invalid value, or wrote where it must not.

    Correct the hook.
    """


class ExternalError(RefoldError):
    """Something outside refold failed: provider, server, program, package or person.

    Retry, or look for the cause there.
    """


class RunAbortedError(RefoldError):
    """The run cannot continue.

    Clean up and let the error pass: the run records its end, and can be resumed or forked.
    """


class TraceError(RefoldError):
    """A trace or JSON Patch cannot be read, written or applied.

    Look at the file: another writer may hold it, its disk may be full, or one of its lines is corrupt.
    """


class TaskError(RefoldError):
    """A task could not be done.

    The cause is its document, its environment, a path in its workspace, or its run.
    """


class DivergenceError(RefoldError):
    """The code no longer does what its trace recorded.

    It has changed, or it depends on something that is not recorded. Restore the code, or fork the run. `divergences`
    are in order, and empty if none could be determined. `result` is the resumed run's result if the divergence was
    found only while the run continued, and otherwise None. If a child run has diverged, `fork_at` is the number of the
    state before the step that started the child, and otherwise None.
    """

    result: Any = None
    fork_at: int | None = None

    def __init__(self, divergences: list[Any], message: str = "", *, fork_at: int | None = None) -> None:
        super().__init__(message or f"the code does not do what this trace recorded: {divergences[0]}. {CAUSES}")
        self.divergences = divergences
        self.fork_at = fork_at
