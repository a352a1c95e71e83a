"""The mode behind `auto`, and the fallback from native calls to text."""

from ..generators.errors import sounds_like_no_tools
from .mode import ToolMode

_TOO_MANY = ("array_above_max_length", "maximum length 128")
FALLBACK: ToolMode = "json-in-xml"
"""The mode for models without native calls."""


def choose_mode(mode: ToolMode, supports_function_calling: bool | None) -> ToolMode:
    """Return the mode for `auto`; return any other mode unchanged.

    `auto` is `api` if the generator has native calls, otherwise `json-in-xml`.
    """
    if mode != "auto":
        return mode
    return "api" if supports_function_calling else FALLBACK


def mode_after_error(mode: ToolMode, error: str, *, configured: ToolMode = "auto") -> ToolMode | None:
    """Return the mode in which to repeat a failed request, or None.

    A request is repeated at most once. `error` is the text of the error of a request in `mode`. If the request has more
    tools than the API takes, the repeat uses text in any `configured` mode. If the API has no native calls, the repeat
    uses text only if `configured` is `auto`. Returns None for any other error.
    """
    if mode != "api":
        return None
    said = error.lower()
    if any(sign in said for sign in _TOO_MANY) or ("tools" in said and "array too long" in said):
        return FALLBACK
    return FALLBACK if configured == "auto" and sounds_like_no_tools(said) else None
