"""Where the running hook or call is found, and the places that must be pure: an effect in one of them is an error."""

from contextvars import ContextVar
from typing import Any


class _Nowhere:
    """Stands for the inside of reduce() and of stop criteria, where no effect is allowed."""


NOWHERE = _Nowhere()
frame_variable: ContextVar[Any] = ContextVar("refold_frame", default=None)
"""The frame of the hook or call that runs now (see `effects.context`), or what stands for a place without one."""
set_frame = frame_variable.set
reset_frame = frame_variable.reset
