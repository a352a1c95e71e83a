"""The JSON form of an effect's arguments: parts of the committed state by reference, large ones by content hash."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python

from ..traces.compare import key_token
from .frozen import FrozenDict, FrozenList
from .held import Held
from .shape import INT_MAX, INT_MIN
from .state import StateModel, dump

_INDEX_LIMIT = 2_000
_MARKS = frozenset(("$state", "$blob", "$object", "$literal"))


class StateRefs:
    """Finds the JSON Pointer of a part of one committed state, by identity; lists are not entered."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._pointers: dict[int, str] | None = None

    @property
    def state(self) -> Any:
        """The state that is looked in."""
        return self._held.state

    def pointer(self, part: Any) -> str | None:
        """Where the object stands in the state, or None if it does not; a field of the state's own goes first."""
        state = self._held.state
        if state is None:
            return None
        for name, value in state.__dict__.items():
            if value is part:
                return f"/{key_token(name)}"
        if self._pointers is None:
            self._pointers = {}
            self._index(state, "")
        return self._pointers.get(id(part))

    def _index(self, node: Any, path: str) -> None:
        assert self._pointers is not None
        members = node.__dict__ if isinstance(node, StateModel) else node
        self._pointers[id(node)] = path
        if not isinstance(members, dict):
            return
        for name, value in members.items():
            if len(self._pointers) >= _INDEX_LIMIT:
                return
            if isinstance(value, FrozenList | FrozenDict | StateModel) and id(value) not in self._pointers:
                self._index(value, f"{path}/{key_token(name)}")


def json_args(args: Mapping[str, Any], refs: StateRefs, on_secret: Callable[[str, str], None]) -> dict[str, Any]:
    """The arguments as JSON, for the trace and the digest; they are written down, never read back into a call.

    A part of the committed state becomes `{"$state": pointer}`, an object without a JSON form `{"$object": class}`.
    """
    return {name: _form(value, refs, on_secret, name) for name, value in args.items()}


def _form(value: Any, refs: StateRefs, on_secret: Callable[[str, str], None], name: str) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value if kind is not str or value.isascii() else value.encode("utf-8", "replace").decode()
    if kind is int:
        return value if INT_MIN <= value <= INT_MAX else str(value)
    if kind is float:
        return value if isfinite(value) else str(value)
    if kind is FrozenList or kind is FrozenDict or isinstance(value, StateModel):
        pointer = refs.pointer(value)
        return value if pointer is None else {"$state": pointer}
    if isinstance(value, dict):
        form = {str(k): _form(v, refs, on_secret, str(k)) for k, v in value.items()}
        return {"$literal": form} if _MARKS & form.keys() else form
    if isinstance(value, list | tuple):
        return [_form(v, refs, on_secret, name) for v in value]
    if isinstance(value, SecretStr | SecretBytes):
        plain = value.get_secret_value()
        on_secret(name, plain if isinstance(plain, str) else plain.decode("utf-8", "replace"))
        return f"<redacted:{name}>"
    return _rest(value, refs, on_secret, name)


def _rest(value: Any, refs: StateRefs, on_secret: Callable[[str, str], None], name: str) -> Any:
    if isinstance(value, Enum):
        return _form(value.value, refs, on_secret, name)
    if isinstance(value, BaseModel):
        return _form(dict(value), refs, on_secret, name)
    if is_dataclass(value) and not isinstance(value, type):
        return _form(asdict(value), refs, on_secret, name)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, set | frozenset):
        return sorted((_form(v, refs, on_secret, name) for v in value), key=dump)
    try:
        return to_jsonable_python(value)
    except ValueError:
        return {"$object": f"{type(value).__module__}.{type(value).__qualname__}"}


def json_bytes(args: dict[str, Any]) -> bytes:
    """The arguments' form as bytes."""
    return dump(args)
