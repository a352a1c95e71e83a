"""What a hook on ToolStart can know beside the call: the conversation up to it, from the state of the run alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..chat.messages import Message


@dataclass(frozen=True, slots=True)
class CurrentTurn:
    """The turn whose calls are about to be made.

    `goal` is what the run is to reach, `system` and `messages` are what the model was sent, `answer` is what it said.
    `session_id` tells conversations apart; it is None where a module was run without its Agent.
    """

    goal: str
    step: int
    system: Message | None
    messages: Sequence[Message]
    answer: Message | None
    session_id: str | None = None


_turn: ContextVar[CurrentTurn | None] = ContextVar("refold_current_turn", default=None)


def current_turn() -> CurrentTurn | None:
    """The turn that a hook on ToolStart is called in; None anywhere else."""
    return _turn.get()


@contextmanager
def in_turn(turn: CurrentTurn) -> Iterator[None]:
    """Makes it the current turn inside."""
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)
