"""Drafts of lists and dicts: what `reduce` changes in plain Python, each item drafted as it is reached."""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, Self, SupportsIndex

from .frozen import FrozenDict, FrozenList
from .resolve import resolve_dict, resolve_list
from .shape import DRAFT_RESOLVERS


class Scope:
    """The drafts of one reduce; they live until it ends."""

    __slots__ = ("drafts",)

    def __init__(self) -> None:
        self.drafts: list[Any] = []


class Node:
    """What a draft remembers: the frozen value it stands for (None for a new one) and what was touched.

    `touched` are indices, keys or fields that were set or drafted; `moved` says that items changed their places, so
    that touched indices or key order no longer tell where things are.
    """

    __slots__ = ("base", "moved", "scope", "shape", "touched")

    def __init__(self, base: Any, shape: Any, scope: Scope) -> None:
        self.base = base
        self.shape = shape
        self.scope = scope
        self.touched: set[Any] = set()
        self.moved = False


Drafter = Callable[[Any, Scope], Any]


def _needs_none(value: Any, scope: Scope) -> None:
    """The drafter of leaves, plain containers and drafts."""


DRAFTERS: dict[type, Drafter] = {}
"""How a draft of a frozen value is made, by class; subclasses are learnt as they are met."""


def draft_of(value: Any, scope: Scope) -> Any:
    """A draft of a frozen value, or None for a value that needs none (leaves, plain containers, drafts)."""
    make = DRAFTERS.get(type(value))
    if make is None:
        make = next((DRAFTERS[base] for base in type(value).__mro__ if base in DRAFTERS), _needs_none)
        DRAFTERS[type(value)] = make
    return make(value, scope)


class DraftList(list[Any]):
    """A list under change: complete at all times, with its items drafted as they are reached."""

    __slots__ = ("meta",)
    meta: Node

    def _all(self) -> list[Any]:
        """The items as a plain list, each frozen one drafted first."""
        node = self.meta
        for i, value in enumerate(list.__iter__(self)):
            draft = draft_of(value, node.scope)
            if draft is not None:
                list.__setitem__(self, i, draft)
                node.touched.add(i)
        return list.__getitem__(self, slice(None))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._all()[index]
        value = list.__getitem__(self, index)
        node = self.meta
        draft = draft_of(value, node.scope)
        if draft is None:
            return value
        place = index.__index__()
        place = place + len(self) if place < 0 else place
        list.__setitem__(self, place, draft)
        node.touched.add(place)
        return draft

    def __iter__(self) -> Iterator[Any]:
        i = 0
        while i < list.__len__(self):
            yield self[i]
            i += 1

    def __reversed__(self) -> Iterator[Any]:
        i = list.__len__(self) - 1
        while i >= 0:
            if i < list.__len__(self):
                yield self[i]
            i -= 1

    def __setitem__(self, index: Any, value: Any) -> None:
        node = self.meta
        if isinstance(index, slice):
            node.moved = True
            list.__setitem__(self, index, value if type(value) is list else list(value))
            return
        list.__setitem__(self, index, value)
        place = index.__index__()
        node.touched.add(place + len(self) if place < 0 else place)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        self.meta.moved = True
        list.__delitem__(self, index)

    def __iadd__(self, other: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(other)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        self._all()
        self.meta.moved = True
        list.__imul__(self, times)
        return self

    def __add__(self, other: Any) -> Any:
        return self._all() + other

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return self._all() * times

    __rmul__ = __mul__

    def append(self, value: Any) -> None:
        """As list.append."""
        list.append(self, value)

    def extend(self, values: Iterable[Any]) -> None:
        """As list.extend."""
        list.extend(self, list(values))

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """As list.insert."""
        self.meta.moved = True
        list.insert(self, index, value)

    def pop(self, index: SupportsIndex = -1) -> Any:
        """As list.pop; the item stays a draft, so that it can be put elsewhere."""
        value = self[index] if list.__len__(self) else None
        list.pop(self, index)
        self.meta.moved = True
        return value

    def remove(self, value: Any) -> None:
        """As list.remove."""
        self.meta.moved = True
        list.remove(self, value)

    def clear(self) -> None:
        """As list.clear."""
        self.meta.moved = True
        list.clear(self)

    def reverse(self) -> None:
        """As list.reverse."""
        self.meta.moved = True
        list.reverse(self)

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """As list.sort."""
        self.meta.moved = True
        ordered = sorted(self._all(), key=key, reverse=reverse)  # type: ignore[type-var, arg-type]
        list.__setitem__(self, slice(None), ordered)

    def copy(self) -> list[Any]:
        """As list.copy: a plain list of the same items."""
        return self._all()

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(item, memo) for item in self._all()]

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return list, (self._all(),)


class DraftDict(dict[Any, Any]):
    """A dict under change: complete at all times, with its values drafted as they are reached."""

    __slots__ = ("meta",)
    meta: Node

    def _all(self) -> dict[Any, Any]:
        """The members as a plain dict, each frozen value drafted first."""
        node = self.meta
        for key, value in [*dict.items(self)]:
            draft = draft_of(value, node.scope)
            if draft is not None:
                dict.__setitem__(self, key, draft)
                node.touched.add(key)
        return dict(dict.items(self))

    def __getitem__(self, key: Any) -> Any:
        value = dict.__getitem__(self, key)
        draft = draft_of(value, self.meta.scope)
        if draft is None:
            return value
        dict.__setitem__(self, key, draft)
        self.meta.touched.add(key)
        return draft

    def get(self, key: Any, default: Any = None) -> Any:
        """As dict.get."""
        return self[key] if key in self else default

    def __setitem__(self, key: Any, value: Any) -> None:
        dict.__setitem__(self, key, value)
        self.meta.touched.add(key)

    def __delitem__(self, key: Any) -> None:
        dict.__delitem__(self, key)
        self.meta.moved = True

    def __ior__(self, other: Any) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def __or__(self, other: Any) -> Any:
        return self._all() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._all()

    def values(self) -> Any:
        """As dict.values, of this moment."""
        return self._all().values()

    def items(self) -> Any:
        """As dict.items, of this moment."""
        return self._all().items()

    def pop(self, key: Any, *default: Any) -> Any:
        """As dict.pop; the value stays a draft, so that it can be put elsewhere."""
        if key not in self:
            return dict.pop(self, key, *default)
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        """As dict.popitem."""
        key = next(dict.__reversed__(self), None)
        if key is None and not self:
            return dict.popitem(self)
        return key, self.pop(key)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As dict.setdefault."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **members: Any) -> None:
        """As dict.update."""
        for key, value in dict(*others, **members).items():
            self[key] = value

    def clear(self) -> None:
        """As dict.clear."""
        self.meta.moved = True
        dict.clear(self)

    def copy(self) -> dict[Any, Any]:
        """As dict.copy: a plain dict of the same members."""
        return self._all()

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return {key: deepcopy(value, memo) for key, value in self._all().items()}

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return dict, (self._all(),)


def _draft_list(base: FrozenList, scope: Scope) -> DraftList:
    draft = DraftList(base)
    draft.meta = Node(base, base.meta, scope)
    scope.drafts.append(draft)
    return draft


def _draft_dict(base: FrozenDict, scope: Scope) -> DraftDict:
    draft = DraftDict(base)
    draft.meta = Node(base, base.meta, scope)
    scope.drafts.append(draft)
    return draft


DRAFTERS[FrozenList] = _draft_list
DRAFTERS[FrozenDict] = _draft_dict
DRAFT_RESOLVERS[DraftList] = resolve_list
DRAFT_RESOLVERS[DraftDict] = resolve_dict
