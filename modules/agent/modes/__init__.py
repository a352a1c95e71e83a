"""Tool modes: how a model sees tools, calls them, and gets results.

There is one text mode, `TextMode`, and `TEXT_MODES` is the table of its forms.
"""

from .conversation import FALLBACK, Answer, Prompt, choose_mode, feedback_on, mode_after_error, prompt_for, read_answer
from .forms import TEXT_MODES
from .mode import FoundCall, Problem, Reading, TextMode, ToolMode

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
