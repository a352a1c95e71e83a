"""The context variable with the running hook or call.

It also marks the places that must be pure. An effect looks up its hook or call here. If it finds NOWHERE instead, it is
inside a pure place, and raises an error.
"""

from contextvars import ContextVar
from typing import Any


class _Nowhere:
    """The class of NOWHERE, the frame in which effects are forbidden.

    It is the frame inside reduce() and stop criteria.
    """


NOWHERE = _Nowhere()
frame_variable: ContextVar[Any] = ContextVar("refold_frame", default=None)
"""The frame of the running hook or call, or NOWHERE in a pure place; `effects.context` lists all values."""
set_frame = frame_variable.set
reset_frame = frame_variable.reset
