"""The base of all errors, and the eight families below it. The package's docstring says what each is for."""

from typing import Any


class RefoldError(Exception):
    """Something refold refuses to do or could not do; the message says what, where, and what to do next.

    Subclasses carry the facts as attributes (`path`, `step`, `expected`, …) so that code need not parse the message.
    """


class DefinitionError(RefoldError):
    """A class, tool, skill, capability or configuration cannot be used as written. Correct its definition."""


class UsageError(RefoldError):
    """A call that cannot be carried out as made, or at this time or place. Correct the call."""


class StateError(RefoldError):
    """A hook gave a value that its state cannot hold, or wrote where it must not. Correct the hook."""


class ExternalError(RefoldError):
    """A provider, server, program, package or person outside refold failed. Retry, or look there."""


class RunAbortedError(RefoldError):
    """The run cannot go on. Clean up and let the error pass: the run records its end, and can be resumed or forked."""


class TraceError(RefoldError):
    """A trace or a JSON Patch cannot be read, written or applied. Look at the file."""


class TaskError(RefoldError):
    """A task could not be done: its document, its environment, a path in its workspace, or its run."""


class DivergenceError(RefoldError):
    """The code no longer does what its trace recorded. Restore the code, or fork the run.

    `divergences` are the places, in their order, and empty if none could be determined. `result` is the resumed run's
    result if the divergence was found only while the run continued, otherwise None.
    """

    result: Any = None

    def __init__(self, divergences: list[Any], message: str = "") -> None:
        super().__init__(message or f"the code has changed since this trace was written: {divergences[0]}")
        self.divergences = divergences
