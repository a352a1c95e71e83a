"""Keeps secrets out of the trace: known values are replaced wherever text enters a run."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ..tasks import Task

SECRET_NAMES = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|APIKEY|PRIVATEKEY|ACCESSKEY|CREDENTIAL)S?(?:_|$)"
    r"|(?:^|_)(?:KEY|AUTH|PAT|PASS)(?:_|$)|_PWD(?:_|$)",
    re.IGNORECASE,
)
"""Environment variables whose names match hold secrets."""

_IN_URL = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@\s:]*:([^/@\s]+)@", re.IGNORECASE)
_OWN_NAME = re.compile(r"[a-z_]+")

MIN_LENGTH = 8

TOKEN_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
"""What well-known tokens look like; used only on request."""


class Redactor:
    """Replaces secrets in texts by `<redacted:NAME>`: in a JSON value's strings, never in its numbers or structure.

    `secrets` maps names to values; values below 8 characters are left alone. `shapes` also replaces what looks like a
    well-known kind of token.
    """

    def __init__(self, secrets: Mapping[str, str], *, shapes: bool = False) -> None:
        self._marks: dict[str, str] = {}
        self._needles: list[bytes] = []
        self._shapes = shapes
        for name in sorted(secrets, key=lambda n: (-len(secrets[n]), n)):
            self.add(name, secrets[name])

    def add(self, name: str, value: str) -> None:
        """Takes one more secret, also as `repr` and JSON write it."""
        value = value.encode("utf-8", "replace").decode()
        if len(value) < MIN_LENGTH:
            return
        for form in (value, repr(value)[1:-1], orjson.dumps(value)[1:-1].decode()):
            if form not in self._marks:
                self._marks[form] = f"<redacted:{name}>"
                self._needles.append(orjson.dumps(form)[1:-1])

    def copy(self) -> "Redactor":
        """One that knows the same secrets and can be given more."""
        copied = Redactor({}, shapes=self._shapes)
        copied._marks, copied._needles = dict(self._marks), list(self._needles)
        return copied

    def learn(self, other: "Redactor") -> None:
        """Takes over the secrets that another one knows."""
        for form, mark in other._marks.items():
            if form not in self._marks:
                self._marks[form] = mark
                self._needles.append(orjson.dumps(form)[1:-1])

    def json(self, data: bytes) -> bytes:
        """The JSON text without secrets; the same object when it holds none."""
        if not self._shapes:
            for needle in self._needles:
                if needle in data:
                    break
            else:
                return data
        document = orjson.loads(data)
        cleaned = orjson.dumps(self._walk(document))
        return data if cleaned == orjson.dumps(document) else cleaned

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret, mark in self._marks.items():
            if secret in text:
                text = text.replace(secret, mark)
        return TOKEN_SHAPES.sub("<redacted:token>", text) if self._shapes else text

    def value(self, value: Any) -> Any:
        """A JSON value without secrets; the same object when it holds none."""
        data = orjson.dumps(value)
        cleaned = self.json(data)
        return value if cleaned is data else orjson.loads(cleaned)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if isinstance(value, dict):  # a plain lower-case word is the name of a field
            return {k if _OWN_NAME.fullmatch(k) else self.text(k): self._walk(v) for k, v in value.items()}
        return value


def redacted_task(task: Task, redactor: Redactor) -> Task:
    """The task without secrets; an id that was derived from them is derived anew, since it names the trace's file."""
    document = task.to_dict()
    cleaned = redactor.value(document)
    if cleaned is document:
        return task
    derived = Task.from_dict({"objective": document["objective"], "inputs": document["inputs"]}).id
    if task.id == derived:
        del cleaned["id"]
    else:
        cleaned["id"] = re.sub(r"<redacted:(.*?)>", "redacted", cleaned["id"])
    return Task.from_dict(cleaned)


def make_redactor(redact: "bool | Redactor | Iterable[str] | Mapping[str, str]") -> Redactor | None:
    """The redactor that `Engine(redact=…)` asks for.

    True takes the values of secret-named environment variables; a mapping or a list adds to them; False is none.
    """
    if redact is False:
        return None
    if isinstance(redact, Redactor):
        return redact
    known = {name: value for name, value in os.environ.items() if SECRET_NAMES.search(name)}
    for name, value in os.environ.items():
        if name not in known and (found := _IN_URL.match(value)):
            known[name] = found[1]
    if isinstance(redact, Mapping):
        known |= redact
    elif redact is not True:
        known |= {f"secret{i}": value for i, value in enumerate(redact)}
    return Redactor(known)
