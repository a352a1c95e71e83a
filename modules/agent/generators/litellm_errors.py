"""What litellm's exceptions mean: told by status, body and cause, as their classes alone mislead.

Seen with litellm 1.106: a missing key and a refused connection both come as InternalServerError with status 500, a
used-up quota as RateLimitError, a 403 as plain APIError. litellm itself is not imported here.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from .errors import (
    ContextOverflowError,
    FatalGeneratorError,
    GeneratorError,
    RateLimitedError,
    TransientGeneratorError,
    sounds_like_overflow,
)

_QUOTA = ("insufficient_quota", "exceeded your current quota", "billing_hard_limit", "credit balance is too low")
_PASSING = frozenset({408, 409, 425})
_TOO_LARGE = 413


def litellm_error(error: Exception, secret: str | None = None) -> GeneratorError:
    """The error in one of this package's classes, without the key, which some providers repeat in their messages."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    message = " ".join(str(getattr(error, "message", None) or error or type(error).__name__).split())
    if secret:
        message = message.replace(secret, "<redacted:api_key>")
    facts: dict[str, Any] = {
        "status": status,
        "retry_after": _retry_after(error),
        "provider_error": type(error).__name__,
    }
    return _class_of(error, status, f"{message} {getattr(error, 'body', None) or ''}")(message, **facts)


def _class_of(error: Exception, status: int | None, told: str) -> type[GeneratorError]:
    names = {cls.__name__ for cls in type(error).__mro__}
    lowered = told.lower()
    if "ContextWindowExceededError" in names or status == _TOO_LARGE or sounds_like_overflow(told):
        return ContextOverflowError
    if any(mark in lowered for mark in _QUOTA) or _lacks_key(error):
        return FatalGeneratorError
    if status == 429 or "RateLimitError" in names:
        return RateLimitedError
    if names & {"Timeout", "APITimeoutError", "APIConnectionError", "TimeoutError", "ConnectionError"}:
        return TransientGeneratorError
    if status is not None:
        return TransientGeneratorError if status >= 500 or status in _PASSING else FatalGeneratorError
    return FatalGeneratorError


def _lacks_key(error: BaseException) -> bool:
    """Whether the request never left, for want of a key: openai then raises the bare base of its errors."""
    return any(type(e).__name__ == "OpenAIError" and type(e).__module__.startswith("openai") for e in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(8):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _retry_after(error: BaseException) -> float | None:
    """The seconds that the provider asked to wait, from the headers of its answer."""
    for cause in _causes(error):
        for headers in (getattr(cause, "litellm_response_headers", None), _response_headers(cause)):
            if isinstance(headers, Mapping) or hasattr(headers, "get"):
                seconds = _seconds(headers)
                if seconds is not None:
                    return seconds
    return None


def _response_headers(error: BaseException) -> Any:
    return getattr(getattr(error, "response", None), "headers", None)


def _seconds(headers: Any) -> float | None:
    """`retry-after-ms`, or `retry-after` as seconds or as a date (RFC 9110, 10.2.3)."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(str(value)) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
