"""Lists and dicts that do not change: what committed states, decisions and observations are made of."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NoReturn

from .errors import FrozenStateError

_LIST_CHANGERS = [
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
]
_DICT_CHANGERS = ["__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"]


class FrozenList(list[Any]):
    """A list that refuses change; `meta` is the shape it was validated by. `copy.deepcopy` gives a plain list.

    Its slots are those of `DraftList`, so that a draft that nobody else holds can become its frozen list uncopied.
    `known` is what `value_digest` knows of it, if it was asked.
    """

    __slots__ = ("known", "meta")
    meta: Any
    known: Any

    def __copy__(self) -> list[Any]:
        return self[:]

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(item, memo) for item in self]

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return list, (self[:],)


class FrozenDict(dict[Any, Any]):
    """A dict that refuses change; `meta` is the shape it was validated by. `copy.deepcopy` gives a plain dict.

    Its slots are those of `DraftDict`, for the same reason. `known` is its digest, if it was asked for.
    """

    __slots__ = ("known", "meta")
    meta: Any
    known: Any

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: deepcopy(value, memo) for key, value in self.items()}

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _refuser(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *args: object, **kwargs: object) -> NoReturn:
        raise FrozenStateError(
            getattr(getattr(self, "meta", None), "label", "a frozen value"),
            f"{name}()" if name[0] != "_" else name.strip("_"),
        )

    refuse.__name__ = name
    return refuse


for _name in _LIST_CHANGERS:
    setattr(FrozenList, _name, _refuser(_name))
for _name in _DICT_CHANGERS:
    setattr(FrozenDict, _name, _refuser(_name))


def thaw(value: Any) -> Any:
    """A plain, changeable copy of frozen lists and dicts, at every depth."""
    if isinstance(value, list):
        return [thaw(item) for item in value]
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    return value
