"""The presence of a person, for tools and policies.

Under an autonomous policy, tools cannot ask a person; the policy itself can use the earlier handlers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..tools.human.handlers import HumanPromptHandler, reset_human_prompt_handler, set_human_prompt_handler
from ..tools.human.prompts import HumanInputResponse, HumanPrompt

_outer: ContextVar[tuple[HumanPromptHandler | None] | None] = ContextVar("refold_policy_people", default=None)
"""The handlers from before `without_people`, in a tuple."""


@contextmanager
def without_people() -> Iterator[None]:
    """Cancel `ask_user` and `confirm` at once inside the block."""
    token = set_human_prompt_handler(_nobody)
    before = None if token.old_value is token.MISSING else token.old_value
    known = _outer.get()
    mark = _outer.set(known if known is not None else (before,))
    try:
        yield
    finally:
        _outer.reset(mark)
        reset_human_prompt_handler(token)


@contextmanager
def with_people() -> Iterator[None]:
    """Restore the handlers from before `without_people` inside the block."""
    known = _outer.get()
    if known is None:
        yield
        return
    token = set_human_prompt_handler(known[0])
    try:
        yield
    finally:
        reset_human_prompt_handler(token)


def _nobody(prompt: HumanPrompt) -> HumanInputResponse:
    return HumanInputResponse(request_id=prompt.request_id, action="cancel")
