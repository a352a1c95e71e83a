"""The holder of a run's current state.

The loop shares it with the code that looks into the state.
"""

from typing import Any

from .model import StateSchema


class Held:
    """The current state of a run; None until init_state has returned one."""

    __slots__ = ("state",)

    def __init__(self, state: StateSchema | None = None) -> None:
        self.state: Any = state
