"""The one place where the engine holds a run's state, so that it can tell whether it alone does."""

from sys import getrefcount
from typing import Any

from .state import StateSchema


class Held:
    """The state of a run, in the one place where the engine holds it; None before init_state gave one.

    While nobody else holds it either, as the interpreter's count of references tells, its lists may go into the next.
    """

    __slots__ = ("state",)

    def __init__(self, state: StateSchema | None = None) -> None:
        self.state: Any = state

    def sole(self) -> bool:
        """Whether nobody but this object refers to the state."""
        return getrefcount(self.state) == _SOLE


def _count_sole() -> int:
    probe = Held()
    probe.state = object()
    return getrefcount(probe.state)


_SOLE = _count_sole()
"""What is counted for a state that only its holder refers to; measured, as interpreters differ."""
