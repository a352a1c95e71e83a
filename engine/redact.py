"""Keeps secrets out of the trace: known values are replaced wherever text enters a run."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

SECRET_NAMES = re.compile(
    r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|APIKEY|AUTH)(?:_|$)", re.IGNORECASE
)
"""Environment variables whose names match hold secrets."""

MIN_LENGTH = 8

TOKEN_SHAPES = re.compile(
    rb"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
"""What well-known tokens look like; used only on request."""


class Redactor:
    """Replaces secrets in JSON by `<redacted:NAME>`.

    `secrets` maps names to values; values below 8 characters are left alone. `shapes` also replaces what looks like a
    well-known kind of token.
    """

    def __init__(self, secrets: Mapping[str, str], *, shapes: bool = False) -> None:
        self._marks: dict[bytes, bytes] = {}
        self._shapes = shapes
        for name in sorted(secrets, key=lambda n: (-len(secrets[n]), n)):
            self.add(name, secrets[name])

    def add(self, name: str, value: str) -> None:
        """Takes one more secret."""
        if len(value) >= MIN_LENGTH:
            self._marks.setdefault(orjson.dumps(value)[1:-1], f"<redacted:{name}>".encode())

    def copy(self) -> "Redactor":
        """One that knows the same secrets and can be given more."""
        copied = Redactor({}, shapes=self._shapes)
        copied._marks = dict(self._marks)
        return copied

    def json(self, data: bytes) -> bytes:
        """The JSON text without secrets; the same object when it holds none."""
        for secret, mark in self._marks.items():
            if secret in data:
                data = data.replace(secret, mark)
        if self._shapes:
            data = TOKEN_SHAPES.sub(b"<redacted:token>", data)
        return data

    def text(self, text: str) -> str:
        """The text without secrets."""
        data = orjson.dumps(text.encode("utf-8", "replace").decode())
        cleaned = self.json(data)
        return text if cleaned is data else str(orjson.loads(cleaned))

    def value(self, value: Any) -> Any:
        """A JSON value without secrets; the same object when it holds none."""
        data = orjson.dumps(value)
        cleaned = self.json(data)
        return value if cleaned is data else orjson.loads(cleaned)


def make_redactor(redact: "bool | Redactor | Iterable[str] | Mapping[str, str]") -> Redactor | None:
    """The redactor that `Engine(redact=…)` asks for.

    True takes the values of secret-named environment variables; a mapping or a list adds to them; False is none.
    """
    if redact is False:
        return None
    if isinstance(redact, Redactor):
        return redact
    known = {name: value for name, value in os.environ.items() if SECRET_NAMES.search(name)}
    if isinstance(redact, Mapping):
        known |= redact
    elif redact is not True:
        known |= {f"secret{i}": value for i, value in enumerate(redact)}
    return Redactor(known)
