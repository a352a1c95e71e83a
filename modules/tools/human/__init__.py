"""Questions to people: the tools, the prompts as data, and the handlers."""

from .ask_tools import approve_call, ask_user, confirm, is_approved
from .handlers import (
    HumanPromptHandler,
    NobodyToAskError,
    UserCancelledError,
    UserInputCallback,
    reset_human_prompt_handler,
    set_human_prompt_handler,
    set_user_input_callback,
)
from .prompts import HumanInputResponse, HumanPrompt, HumanPromptOption, HumanQuestion, QuestionAnswer

__all__ = [
    "HumanInputResponse",
    "HumanPrompt",
    "HumanPromptHandler",
    "HumanPromptOption",
    "HumanQuestion",
    "NobodyToAskError",
    "QuestionAnswer",
    "UserCancelledError",
    "UserInputCallback",
    "approve_call",
    "ask_user",
    "confirm",
    "is_approved",
    "reset_human_prompt_handler",
    "set_human_prompt_handler",
    "set_user_input_callback",
]
