"""Objects with conditional writes."""

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

import obstore
import orjson
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from ....errors import StoreError
from ....secret_table import without_password

_AT_ONCE = 16
"""How many objects are read at once: a request takes some 20 ms, mostly waiting."""
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Found:
    """An object's bytes, version and time of writing.

    `name` is for messages, and has the store's address; `tag` names this version; `at` is by the store's clock, in
    seconds since the epoch.
    """

    name: str
    data: bytes
    tag: str
    at: float

    def doc(self) -> dict[str, Any]:
        """Return the object's JSON document, or raise `StoreError`."""
        try:
            doc = orjson.loads(self.data)
        except orjson.JSONDecodeError as error:
            raise StoreError(
                f"{self.name} is not as refold wrote it ({error}): another program changed the object, or something "
                "between cuts answers short; try again, or restore the object"
            ) from error
        if not isinstance(doc, dict):
            raise StoreError(f"{self.name} is not as refold wrote it: another program changed the object; restore it")
        return doc


@dataclass(frozen=True, slots=True)
class Entry:
    """An object in a list."""

    name: str
    tag: str
    size: int
    at: float


class Bucket:
    """The objects below a prefix; `url` is the store's address for messages."""

    def __init__(self, objects: Any, url: str, *, probe: bool = True) -> None:
        """Wrap an obstore store.

        Raises `StoreError` if the store does not honour conditional writes. Without `probe`, this is not tested,
        because testing writes: the store is then for reading.
        """
        self.url = without_password(url)
        self._objects = objects
        if probe:
            self.probe()

    def probe(self) -> None:
        """Raise `StoreError` if the server ignores the conditions of a write.

        Some servers answer as if the conditions held: every writer would believe that it is the only one.
        """
        name = f"probe/{token_hex(8)}"
        try:
            created = self.create(name, b"1")
            again = self.create(name, b"2")
            first = self.get(name)
            replaced = first is not None and self.replace(name, b"3", first.tag)
            stale = first is not None and self.replace(name, b"4", first.tag)
            if not created or again or not replaced or stale:
                raise StoreError(
                    f"{self.url} does not honour conditional writes (If-None-Match, If-Match), without which two "
                    "writers overwrite each other: use a server that does, or another store"
                )
        finally:
            with contextlib.suppress(StoreError):
                self.delete([name])

    def get(self, name: str) -> Found | None:
        """Return an object, or None."""
        try:
            result = self._asked(lambda: obstore.get(self._objects, name))
            data = bytes(self._asked(result.bytes))
        except FileNotFoundError:
            return None
        return Found(
            f"{self.url}: the object `{name}`",
            data,
            result.meta["e_tag"] or "",
            result.meta["last_modified"].timestamp(),
        )

    def get_all(self, names: list[str]) -> list[Found | None]:
        """Return several objects, read at once."""
        if len(names) < 2:
            return [self.get(name) for name in names]
        with ThreadPoolExecutor(min(_AT_ONCE, len(names))) as pool:
            return list(pool.map(self.get, names))

    def create(self, name: str, data: bytes) -> bool:
        """Write a new object, and return whether this call wrote it.

        If an object with the same bytes exists, this call counts as its writer: the client repeats a request after a
        lost answer.
        """
        try:
            self._asked(lambda: obstore.put(self._objects, name, data, mode="create"))
            return True
        except AlreadyExistsError:
            found = self.get(name)
            return found is not None and found.data == data

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """Write an object if its version has this tag.

        Returns whether this call wrote the object.
        """
        try:
            self._asked(lambda: obstore.put(self._objects, name, data, mode={"e_tag": tag}))
            return True
        except (PreconditionError, FileNotFoundError):
            found = self.get(name)
            return found is not None and found.data == data

    def put(self, name: str, data: bytes) -> None:
        """Write an object unconditionally."""
        self._asked(lambda: obstore.put(self._objects, name, data))

    def entries(self, prefix: str) -> list[Entry]:
        """Return the objects below a prefix, by name."""
        chunks = self._asked(lambda: list(obstore.list(self._objects, prefix.rstrip("/"))))
        return sorted(
            (
                Entry(meta["path"], meta["e_tag"] or "", meta["size"], meta["last_modified"].timestamp())
                for chunk in chunks
                for meta in chunk
                if meta["path"].startswith(prefix)
            ),
            key=lambda entry: entry.name,
        )

    def delete(self, names: list[str]) -> None:
        """Remove objects."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._asked(partial(obstore.delete, self._objects, name))

    def now(self) -> float:
        """Return the time by the store's clock, from a new object."""
        self.put("clock", token_hex(8).encode())
        found = self.get("clock")
        if found is None:
            raise StoreError(
                f"{self.url}: the object `clock` was removed as soon as it was written; let no other program delete it"
            )
        return found.at

    def _asked(self, ask: Callable[[], R]) -> R:
        try:
            return ask()
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            raise
        except BaseError as error:
            reason = without_password(str(error)).strip().splitlines()[0][:300]
            raise StoreError(f"{self.url} did not answer as expected: {reason}") from error
