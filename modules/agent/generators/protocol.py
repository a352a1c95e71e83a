"""What a generator is: anything with a model's name that answers messages; streaming and capabilities are optional."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, runtime_checkable

from ....engine import StateModel
from ..chat.messages import Message
from .generation import Delta, Generation
from .params import GenerateParams


@runtime_checkable
class Generator(Protocol):
    """Answers messages. `model` names it in traces and events.

    `generate` raises the classes of `errors`, or any exception (see `provider_errors.classified`). It never makes text
    of an error. It must not change what it is passed, and keeps no run's state: one generator serves many runs at once.
    """

    model: str

    async def generate(self, messages: Sequence[Message], params: GenerateParams) -> Generation:
        """The model's answer to a chat whose last message is a user's or a tool's."""


@runtime_checkable
class StreamingGenerator(Generator, Protocol):
    """A generator that can also answer piece by piece."""

    def stream(self, messages: Sequence[Message], params: GenerateParams) -> AsyncIterator[Delta | Generation]:
        """The pieces as they come, and the whole Generation as the last item."""


class Capabilities(StateModel):
    """What is known of a model. `function_calling` is None where nothing is; `source` says who knows it."""

    function_calling: bool | None = None
    prompt_caching: bool = False
    max_input_tokens: int | None = None
    source: str = ""


@runtime_checkable
class DescribedGenerator(Generator, Protocol):
    """A generator that knows what its model can do."""

    async def capabilities(self) -> Capabilities:
        """What is known of the model; asks nobody."""
