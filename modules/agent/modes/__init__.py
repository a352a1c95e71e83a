"""Tool modes: how a model sees tools, calls them, and gets results."""

from .conversation import TEXT_MODES, Answer, Prompt, feedback_on, prompt_for, read_answer
from .mode import FoundCall, Problem, Reading, TextMode, ToolMode
from .selection import FALLBACK, choose_mode, mode_after_error

__all__ = [
    "FALLBACK",
    "TEXT_MODES",
    "Answer",
    "FoundCall",
    "Problem",
    "Prompt",
    "Reading",
    "TextMode",
    "ToolMode",
    "choose_mode",
    "feedback_on",
    "mode_after_error",
    "prompt_for",
    "read_answer",
]
