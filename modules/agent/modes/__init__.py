"""Tool modes: how a model sees tools, calls them, and gets results.

There is one text mode, `TextMode`, and `TEXT_MODES` is the table of its forms.
"""

from .conversation import Answer, Prompt, feedback_on, mode_after_error, prompt_for, read_answer
from .mode import Reading, ToolMode

__all__ = [
    "Answer",
    "Prompt",
    "Reading",
    "ToolMode",
    "feedback_on",
    "mode_after_error",
    "prompt_for",
    "read_answer",
]
