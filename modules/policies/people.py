"""The presence of a person, for tools and policies.

Under an autonomous policy, tools cannot ask a person; the policy itself can use the earlier handlers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ..tools.human.handlers import answerers
from ..tools.human.prompts import HumanInputResponse, HumanPrompt


@contextmanager
def without_people() -> Iterator[None]:
    """Cancel `ask_user` and `confirm` at once inside the block."""
    now = answerers.get()
    token = answerers.set(now._replace(handler=_nobody, outside=now.outside or (now.handler,)))
    try:
        yield
    finally:
        answerers.reset(token)


@contextmanager
def with_people() -> Iterator[None]:
    """Restore the handlers from before `without_people` inside the block."""
    now = answerers.get()
    token = answerers.set(now if now.outside is None else now._replace(handler=now.outside[0]))
    try:
        yield
    finally:
        answerers.reset(token)


def _nobody(prompt: HumanPrompt) -> HumanInputResponse:
    return HumanInputResponse(request_id=prompt.request_id, action="cancel")
