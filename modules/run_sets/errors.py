"""Errors of sets."""

from collections.abc import Sequence

from ...traces.errors import UsageError


def first_error(error: BaseException) -> BaseException:
    """Return the first error of a task group without the group.

    Callers do not know that a set uses task groups.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class SetMismatchError(UsageError):
    """The command does not fit the set; `keys` are the differing tasks."""

    def __init__(self, message: str, keys: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.keys = tuple(keys)
