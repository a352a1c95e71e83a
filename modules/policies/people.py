"""Whether a person is there: tools under an autonomous policy find nobody, the policy itself finds who was there."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..tools.human import (
    HumanInputResponse,
    HumanPrompt,
    HumanPromptHandler,
    reset_human_prompt_handler,
    set_human_prompt_handler,
)

_outer: ContextVar[tuple[HumanPromptHandler | None] | None] = ContextVar("refold_policy_people", default=None)
"""In a tuple, who answered before it was said that nobody is there."""


@contextmanager
def without_people() -> Iterator[None]:
    """Inside, `ask_user` and `confirm` are answered at once: nobody is there, so they are cancelled."""
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
    """Inside, those who were there before it was said that nobody is are there again."""
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
