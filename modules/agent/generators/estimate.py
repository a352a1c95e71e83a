"""Rough estimates of a request's tokens, to reserve before the real count."""

from collections.abc import Sequence
from typing import Any

from ..chat.messages import Message
from .params import GenerateParams

CHARACTERS_A_TOKEN = 4
"""Roughly the average of English text with today's vocabularies."""

_AROUND = 4
_PICTURE = 1000


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Return the approximate number of tokens of messages.

    This is a quarter of their characters; an image or a piece of audio counts as 1,000 tokens.
    """
    return sum(map(_tokens, messages))


def _tokens(message: Message) -> int:
    characters, others = 0, 0
    if isinstance(message.body, str):
        characters = len(message.body)
    else:
        for part in message.body:
            if part.type == "text":
                characters += len(part.text)
            else:
                others += _PICTURE
    for call in message.tool_calls or ():
        characters += len(call.function.name) + len(call.function.arguments)
    return characters // CHARACTERS_A_TOKEN + others + _AROUND


def tokens_to_reserve(
    *,
    messages: Sequence[Message],
    params: GenerateParams | None = None,
    system: Message | None = None,
    reserve: int | None = None,
    **_: Any,
) -> int:
    """Return the tokens that a request reserves: its prompt and longest reply.

    The prompt's share is `reserve` if given, otherwise an estimate. Without `max_tokens`, the length of the reply is
    unknown and nothing is reserved for it.
    """
    reply = params.max_tokens or 0 if params is not None else 0
    if reserve is not None:
        return reserve + reply
    return estimate_tokens(messages) + (_tokens(system) if system is not None else 0) + reply
