"""Keeps secrets out of the trace: known values are replaced wherever text enters a run."""

import base64
import html
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from ...tasks import Task
from ...tasks.task_id import derived_id

SECRET_NAMES = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE|SECRET|TOKEN|APIKEY|PRIVATEKEY|ACCESSKEY|CREDENTIAL|COOKIE|WEBHOOK)S?(?:_|$)"
    r"|(?:^|_)(?:KEY|AUTH|PAT|PASS|PGPASS|DSN|JWT|BEARER|SIGNING|STRIPE|MNEMONIC)(?:_|$)|_PWD(?:_|$)",
    re.IGNORECASE,
)
"""Environment variables whose names match hold secrets."""

_IN_URL = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@\s:]*:([^/@\s]+)@", re.IGNORECASE)
_OWN_NAME = re.compile(r"[a-z_]+")

MIN_LENGTH = 8

TOKEN_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[A-Za-z0-9_-]{10,4000}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,})"
)
"""What well-known tokens look like; used only on request. The header of a JWT is short: one without a bound would be
looked for to the end of a text from each place where it may begin."""


class Redactor:
    """Replaces secrets in texts by `<redacted:NAME>`: in a JSON value's strings, never in its numbers or structure.

    `secrets` maps names to values; values below 8 characters are left alone. `shapes` also replaces what looks like a
    well-known kind of token.
    """

    def __init__(self, secrets: Mapping[str, str], *, shapes: bool = False) -> None:
        self._marks: dict[str, str] = {}
        """What stands for each form of a secret, the longest form first: one secret may begin as another does."""
        self._needles: list[bytes] = []
        self._shapes = shapes
        for name in sorted(secrets):
            self._take(secrets[name], name)
        self._sort()

    def add(self, name: str, value: str) -> None:
        """Takes one more secret; see `forms` for how else it may be written."""
        if self._take(value, name):
            self._sort()

    def _take(self, value: str, name: str) -> bool:
        value = value.encode("utf-8", "replace").decode()
        if len(value) < MIN_LENGTH or self._marks.get(value) is not None:
            return False
        for form in forms(value):
            self._marks.setdefault(form, f"<redacted:{name}>")
        return True

    def _sort(self) -> None:
        self._marks = dict(sorted(self._marks.items(), key=_longest_first))
        self._needles = [orjson.dumps(form)[1:-1] for form in self._marks]

    def copy(self) -> "Redactor":
        """One that knows the same secrets and can be given more."""
        copied = Redactor({}, shapes=self._shapes)
        copied._marks, copied._needles = dict(self._marks), self._needles
        return copied

    def learn(self, other: "Redactor") -> None:
        """Takes over the secrets that another one knows."""
        if not other._marks.keys() <= self._marks.keys():
            self._marks = other._marks | self._marks
            self._sort()

    def is_in_name(self, name: str) -> bool:
        """Whether a file's name, made of a text's words, has the beginning of a secret in it."""
        words = _words(name)
        return any(_words(form)[:MIN_LENGTH] in words for form in self._marks if len(_words(form)) >= MIN_LENGTH)

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
        if isinstance(value, dict):
            cleaned: dict[str, Any] = {}
            for key, each in value.items():  # a plain lower-case word is the name of a field
                name = shown = key if _OWN_NAME.fullmatch(key) else self.text(key)
                number = 1
                while name in cleaned or (name != key and name in value):  # two keys may hold the same secret
                    number += 1
                    name = f"{shown} {number}"
                cleaned[name] = self._walk(each)
            return cleaned
        return value


def forms(value: str) -> list[str]:
    """A secret and how else it is written: escaped by `repr` and JSON, in a URL, in HTML, in base64, in lower case.

    In base64 a text looks in one of three ways, as it stands; of each, what holds for any text around it.
    """
    raw = value.encode()
    found = [value, repr(value)[1:-1], orjson.dumps(value)[1:-1].decode(), json.dumps(value)[1:-1], value.lower()]
    found += [quote(value, safe=""), quote(value), quote_plus(value), html.escape(value), raw.hex()]
    for shift, start in enumerate((0, 2, 3)):
        coded = base64.b64encode(bytes(shift) + raw).decode()[start : (shift + len(raw)) * 8 // 6]
        found += [coded, coded.replace("+", "-").replace("/", "_")]
    return list(dict.fromkeys(found))


def _longest_first(form: tuple[str, str]) -> tuple[int, str]:
    return -len(form[0]), form[0]


def _words(text: str) -> str:
    """The letters and digits of a text, in lower case, as they go into a file's name."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return "".join(re.findall(r"[a-z0-9]+", plain))


def redacted_task(task: Task, redactor: Redactor) -> Task:
    """The task without secrets; an id that was derived from them is derived anew, since it names the trace's file."""
    document = task.to_dict()
    cleaned = redactor.value(document)
    if cleaned is document:
        cleaned = dict(document)
    elif cleaned["id"] == document["id"] == derived_id(document["objective"], document["inputs"]):
        del cleaned["id"]
    if "id" in cleaned and (cleaned["id"] != document["id"] or redactor.is_in_name(document["id"])):
        cleaned["id"] = derived_id(cleaned["objective"], cleaned["inputs"])
        if redactor.is_in_name(cleaned["id"]):
            cleaned["id"] = derived_id("task", cleaned)
    return task if cleaned == document else Task.from_dict(cleaned)


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
        redactor = Redactor(known)
        for value in redact:  # all under one name: their order may be another one in the next process
            redactor.add("secret", value)
        return redactor
    return Redactor(known)
