"""The digest of a value by its JSON, nested value by nested value: the same wherever the value stands or came from.

A digest is BLAKE2b-128, in hex, of the value's JSON without white space and with the members of objects sorted by name,
in which every list and object inside stands as `#` and its own digest. So equal values have equal digests, in any
process, whether they are frozen or plain, shared or not; and what did not change is not read again: frozen values keep
their digests, and a list that was only appended to goes on from where it was.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any
from weakref import ref

import orjson

from .frozen import FrozenDict, FrozenList
from .model import StateModel
from .serialization import PLAIN, json_default

_SIZE = 16
_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_LONG = 32
"""Lists from this length on keep their digest, at some 400 bytes each; below, reading the items again is as cheap."""

_models: dict[int, tuple[Any, bytes]] = {}
"""The digests of committed models by their ids, for as long as the models are there."""


def value_digest(value: Any) -> bytes:
    """The digest, in hex, of a list or object: frozen, plain, or a state's model."""
    kind = type(value)
    if kind is FrozenList:
        return _of_frozen_list(value)
    if kind is FrozenDict:
        known: bytes | None = getattr(value, "known", None)
        if known is None:
            known = value.known = _of_members(value)
        return known
    if isinstance(value, StateModel):
        return _of_model(value)
    if isinstance(value, dict):
        return _of_members(value)
    return blake2b(b"[%b]" % _items(value), digest_size=_SIZE).hexdigest().encode()


def member_name(key: Any) -> str:
    """The name that a dict's key has in JSON."""
    if type(key) is str:
        return key
    name: str
    (name,) = orjson.loads(orjson.dumps({key: None}, option=orjson.OPT_NON_STR_KEYS))
    return name


def _of_frozen_list(value: Any) -> bytes:
    size = len(value)
    if size < _LONG:
        return blake2b(b"[%b]" % _items(value), digest_size=_SIZE).hexdigest().encode()
    known = getattr(value, "known", None)
    if known is None or known[0] > size:
        hasher = blake2b(b"[", digest_size=_SIZE)
        hasher.update(_items(value))
    else:
        hasher = known[1]
        if known[0] < size:
            hasher = hasher.copy()
            hasher.update(b",%b" % _items(value[known[0] :]))
    if known is None or known[1] is not hasher:
        value.known = size, hasher
    ended = hasher.copy()
    ended.update(b"]")
    return ended.hexdigest().encode()


def _of_model(model: StateModel) -> bytes:
    known = _models.get(id(model))
    if known is not None and known[0]() is model:
        return known[1]
    digest = _of_members(model.__dict__)
    _models[id(model)] = ref(model, partial(_forget, id(model))), digest
    return digest


def _forget(key: int, gone: Any) -> None:
    """Drops what is known of a model that is gone; another one may have its id by now."""
    known = _models.get(key)
    if known is not None and known[0] is gone:
        del _models[key]


def _of_members(members: Mapping[Any, Any]) -> bytes:
    return blake2b(members_form(members), digest_size=_SIZE).hexdigest().encode()


def members_form(members: Mapping[Any, Any]) -> bytes:
    """An object as its digest is taken of it: what is nested in it stands there by its own digest."""
    if PLAIN.issuperset(map(type, members.values())):
        return orjson.dumps(members, option=_SORTED)
    shown = {key: value if type(value) in PLAIN else orjson.Fragment(_part(value)) for key, value in members.items()}
    return orjson.dumps(shown, option=_SORTED)


def _items(items: Iterable[Any]) -> bytes:
    """The items as they stand in their list's digest."""
    if PLAIN.issuperset(map(type, items)):
        return orjson.dumps(items)[1:-1]
    return b",".join(map(_part, items))


def _part(value: Any) -> bytes:
    """A value as it stands in the digest of what holds it."""
    if type(value) in PLAIN:
        return orjson.dumps(value)
    if isinstance(value, list | tuple | dict | StateModel):
        return b"#%b" % value_digest(value)
    return _part(json_default(value))
