"""Which mode `auto` stands for, and when native calls give way to text."""

from ..generators.errors import sounds_like_no_tools
from .mode import ToolMode

_TOO_MANY = ("array_above_max_length", "maximum length 128")
FALLBACK: ToolMode = "json-in-xml"
"""The mode for models without native calls."""


def choose_mode(mode: ToolMode, supports_function_calling: bool | None) -> ToolMode:
    """Return what `auto` stands for.

    `api` if the generator says that it has native calls, else `json-in-xml`.

    Any other mode is itself.
    """
    if mode != "auto":
        return mode
    return "api" if supports_function_calling else FALLBACK


def mode_after_error(mode: ToolMode, error: str, *, configured: ToolMode = "auto") -> ToolMode | None:
    """Return the mode in which to ask again, once, after this error.

    A request in `mode` failed with it. None if the error is not about the mode.

    A request with more tools than the API takes is made as text, whatever mode was `configured`; one that the API
    refuses since it has no native calls, only where that was `auto`.
    """
    if mode != "api":
        return None
    said = error.lower()
    if any(sign in said for sign in _TOO_MANY) or ("tools" in said and "array too long" in said):
        return FALLBACK
    return FALLBACK if configured == "auto" and sounds_like_no_tools(said) else None
