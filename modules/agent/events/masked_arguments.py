"""Masking of secrets in tool arguments for display."""

import json
import re
from typing import Any

MASK = "***"

_ANYWHERE = r"pass(?:word|wd|phrase|code)s?|secrets?|(?:api|private|access)[-_]?keys?|credentials?|authorization"
_AT_THE_END = r"tokens?|pwd|auth|cookies?|hash(?:es)?|(?:nt|lm)hash|bearer|jwt|otp|pin"
_SECRET = f"{_ANYWHERE}|{_AT_THE_END}"
_NAME = re.compile(
    rf"(?:^|[-_.\s])(?:(?:{_ANYWHERE})(?:$|[-_.\s\d])|(?:{_AT_THE_END})\d*$)",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FLAG = re.compile(rf"^--?(?:[\w-]+[-_])?(?:{_SECRET})$", re.IGNORECASE)
_IN_TEXT = re.compile(rf"(?<!\S)(--?(?:[\w-]+[-_])?(?:{_SECRET}))(=|\s+)('[^']*'|\"[^\"]*\"|\S+)", re.IGNORECASE)
_IN_BROKEN = re.compile(
    rf"(\"(?=[\w.-]*(?:{_SECRET}))[\w.-]*+\"\s*+:\s*+)(\"(?:[^\"\\]|\\.)*+\"?|[^,}}\]\s]+)", re.IGNORECASE
)


def masked_arguments(arguments: str) -> str:
    """Return the text of a call's arguments with secrets masked.

    Values of names such as `password`, `api_key` and `token` become `***`, and so does the word after a flag such as
    `--password`, in a list of arguments or in a command. Arguments other than JSON are searched as text.
    """
    try:
        document = json.loads(arguments)
    except (ValueError, RecursionError):
        return _in_text(_IN_BROKEN.sub(rf'\1"{MASK}"', arguments))
    cleaned = masked(document)
    return arguments if cleaned == document else json.dumps(cleaned, ensure_ascii=False)


def masked(value: Any) -> Any:
    """Return a JSON value with its secrets masked; see `masked_arguments`."""
    if isinstance(value, str):
        return _in_text(value)
    if isinstance(value, dict):
        return {
            name: MASK if is_secret(name) and not _is_harmless(name, item) else masked(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [
            MASK if i and isinstance(value[i - 1], str) and _FLAG.match(value[i - 1]) else masked(item)
            for i, item in enumerate(value)
        ]
    return value


def is_secret(name: str) -> bool:
    """Return whether a name, in any spelling, is that of a secret.

    Examples are `api_key`, `apiKey` and `API-KEY`.
    """
    return _NAME.search(_CAMEL.sub("_", name)) is not None


def _is_harmless(name: str, value: Any) -> bool:
    """Return whether a value is empty or a number of tokens."""
    return value in (None, "", [], {}) or (isinstance(value, int | float) and name.lower().endswith("tokens"))


def _in_text(text: str) -> str:
    return _IN_TEXT.sub(rf"\1\2{MASK}", text) if "-" in text else text
