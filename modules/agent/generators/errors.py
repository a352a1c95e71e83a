"""What can go wrong when a model is asked, by what one can do about it; the same live and replayed."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from ....errors import EffectError, ExternalError

OVERFLOW_MARKS = (
    "context_length_exceeded",
    "context window",
    "token limit",
    "maximum context length",
    "is too long",
    "chunk too big",
    "prompt is too long",
    "too many tokens",
    "exceeds the available context size",
)
"""What the messages of errors hold, in lower case, when a prompt was too long."""


_TOOLS = re.compile(
    r"\btools?[ _](?:use|calling|calls?|choice|param\w*)\b|\btools\b|\bfunction[ _-]calling\b|\bfunctions\b",
    re.IGNORECASE,
)
_REFUSING = re.compile(
    r"(?:not|n't) (?:be )?(?:support|enabl|allow|permit|available)|unsupported|unrecogni[sz]ed|unknown|unexpected"
    r"|\brequires?\b|not permitted|extra (?:inputs|fields)",
    re.IGNORECASE,
)


class GeneratorError(ExternalError):
    """A model could not be asked, or gave no answer. Its class says what can be done about it.

    `status` is the HTTP status, if there was one; `retry_after` the seconds that the provider asked to wait;
    `provider_error` the class of the original error; `seconds` how long the attempt took. A trace has whole seconds
    only, so that two runs that fared alike are alike.
    """

    transient: ClassVar[bool] = False
    most_tries: ClassVar[int | None] = None
    """How often it is worth to try again at most; None for as often as the backoff says."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        provider_error: str | None = None,
        seconds: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.provider_error = provider_error
        self.seconds = seconds

    @property
    def data(self) -> dict[str, Any]:
        """The fields as JSON, which a trace keeps beside the class and the message."""
        fields = {
            "status": self.status,
            "retry_after": self.retry_after,
            "provider_error": self.provider_error,
            "seconds": round(self.seconds) or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


class TransientGeneratorError(GeneratorError):
    """It may work when asked again: the server was busy, out of reach, too slow, or broke off."""

    transient = True


class UnreachableError(TransientGeneratorError):
    """Nothing answers where the server should be: not running, another address, no network. Tried a few times only."""

    most_tries = 2


class RateLimitedError(TransientGeneratorError):
    """The provider has had enough requests for now; `retry_after` says for how long, where it told."""


class ContextOverflowError(GeneratorError):
    """The prompt is longer than the model can read; a shorter one may do."""


class FatalGeneratorError(GeneratorError):
    """Asking again will not help: no key, no credit, no such model, a request that is refused."""


class ScriptExhaustedError(FatalGeneratorError):
    """A script has no further answer."""


class CassetteMissError(FatalGeneratorError):
    """A request that a cassette has no answer to, and how it differs from the nearest one that it has."""


_BY_NAME: dict[str, type[GeneratorError]] = {
    cls.__name__: cls
    for cls in (
        TransientGeneratorError,
        UnreachableError,
        RateLimitedError,
        ContextOverflowError,
        FatalGeneratorError,
        ScriptExhaustedError,
        CassetteMissError,
    )
}
KINDS: dict[str, type[GeneratorError]] = {
    "transient": TransientGeneratorError,
    "rate_limit": RateLimitedError,
    "context_overflow": ContextOverflowError,
    "fatal": FatalGeneratorError,
}
"""The kinds of errors by the names that scripts give them."""


def generator_error(error: EffectError) -> GeneratorError:
    """The error of a journaled generation as its own class again."""
    data = error.data if isinstance(error.data, Mapping) else {}
    cls = _BY_NAME.get(error.error_type)
    if cls is None:
        return FatalGeneratorError(f"{error.error_type}: {error.message}", provider_error=error.error_type)
    return cls(error.message, **{name: data[name] for name in _FIELDS if name in data})


_FIELDS = ("status", "retry_after", "provider_error", "seconds")


def sounds_like_no_tools(message: str) -> bool:
    """Whether an error's message says that the model, or its server, takes no native tools."""
    return _TOOLS.search(message) is not None and _REFUSING.search(message) is not None


def sounds_like_overflow(message: str) -> bool:
    """Whether an error's message says that the prompt was too long."""
    lowered = message.lower()
    return any(mark in lowered for mark in OVERFLOW_MARKS)
