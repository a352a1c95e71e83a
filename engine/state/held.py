"""The one place where the engine holds a run's state."""

from typing import Any

from .model import StateSchema


class Held:
    """The state of a run; None before init_state gave one."""

    __slots__ = ("state",)

    def __init__(self, state: StateSchema | None = None) -> None:
        self.state: Any = state
