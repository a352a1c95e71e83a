"""How many tokens a request will take, roughly: what is set aside for it before the provider tells."""

from collections.abc import Sequence
from typing import Any

from ..chat.messages import Message
from .params import GenerateParams

CHARACTERS_A_TOKEN = 4
"""About what texts in English come to with today's vocabularies."""

_AROUND = 4
_PICTURE = 1000


def estimate_tokens(messages: Sequence[Message]) -> int:
    """The tokens of messages, told by their characters; a picture or a sound counts as 1,000."""
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
    """What a request sets aside: what its asker said, else an estimate of its prompt; and the longest reply.

    Without `max_tokens` a reply has no known length, and nothing is set aside for it.
    """
    reply = params.max_tokens or 0 if params is not None else 0
    if reserve is not None:
        return reserve + reply
    return estimate_tokens(messages) + (_tokens(system) if system is not None else 0) + reply
