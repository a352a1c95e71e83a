"""Whether a person is there.

Tools under an autonomous policy find nobody; the policy itself finds who was there before.
"""

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
"""In a tuple, who answered before `without_people` was entered."""


@contextmanager
def without_people() -> Iterator[None]:
    """Answer `ask_user` and `confirm` at once: nobody is there.

    So they are cancelled.
    """
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
    """Let those answer who were there before `without_people`."""
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
