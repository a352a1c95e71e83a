"""Drafts of lists, whose items become drafts when they are read.

A draft's methods record what they change, but code in C (`heapq`, `bisect`) writes into lists past these methods. So
`freeze_and_patch` must check that the untouched items of a draft are still its base's objects.

Comparing each pair by `is` costs some eight times as much as a copy of the list. `old == now` costs half as much as the
copy: for each pair, C compares the two pointers first, and calls `__eq__` only if they differ. So `stands` uses `==`.
If the lists differ, an item has changed. If they are equal, each pair is one object or two equal objects. The types of
the base's items decide whether two equal objects matter:

    types in the base               a pair that is equal but not one object                         answer
    frozen lists, dicts, models     none: `equal` makes them equal to themselves alone              SAME
    these, str and None             the same text, perhaps of a subclass of str: the same JSON      EQUAL
    int alone                       1.0 or True for 1, other JSON: found by a look at the JSON      SAME or OTHER
    any others                      too many ways (-0.0 and 0.0, dates): `is`, pair by pair         SAME or OTHER

After EQUAL, `freeze_and_patch` puts the base's objects back, so that no instance of a subclass remains in the state.
After SAME, equal integers may be two objects, but both are plain integers.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import lru_cache
from operator import index as as_index
from operator import is_
from typing import Any, Self, SupportsIndex

import orjson

from ..frozen import TYPE_NAMES, FrozenDict, FrozenList, equal
from ..model import StateModel
from .draft import DRAFTERS, Node, Scope, add_expired, draft_of, draft_within
from .splices import Run, base_index, spliced

_VALUES_FIRST = sys.version_info >= (3, 13)
"""Whether Python makes the values of a slice assignment before it looks up the slice.

Python does so since 3.13. The order matters, as making the values runs an iterator, which may change the list itself.
"""


class DraftList(list[Any]):
    """A complete, changeable list, whose items become drafts when read."""

    __slots__ = ("kinds", "known", "meta")
    meta: Node
    kinds: frozenset[type]
    known: Any

    def __new__(cls, *values: Any) -> list[Any]:  # type: ignore[misc]
        """Return a plain list, so that `type(state.items)(values)` works; only `_draft_list` makes drafts."""
        return list(*values)

    def _touch(self, index: int) -> None:
        """Record that an item of the base was set or drafted."""
        node = self.meta
        runs = node.moved
        place = base_index(runs, index) if runs is not None else index if index < len(node.base) else -1
        if place >= 0:
            node.touched[place] = None

    def _splice(self, start: int, stop: int, count: int) -> None:
        """Record, before the change, that `count` items replace a slice."""
        node = self.meta
        whole = [Run(0, 0, len(node.base))] if node.moved is None else node.moved
        node.moved = spliced(whole, start, max(start, stop), count)

    def __getitem__(self, index: Any) -> Any:
        if type(index) is slice:
            return [self[i] for i in range(*index.indices(list.__len__(self)))]
        value = list.__getitem__(self, index)
        node = self.meta
        make = DRAFTERS.get(type(value), draft_of)
        draft = None if make is None else make(value, node.scope)
        if draft is None:
            if node.shape.item.holds_models:
                draft_within(value, node.scope)
            return value
        place = index.__index__()
        self._touch(place + len(self) if place < 0 else place)
        list.__setitem__(self, place, draft)
        return draft

    def __iter__(self) -> Iterator[Any]:
        i = 0
        while i < len(self):  # raises if the draft has expired: `len` asks the class that the list has by then
            yield self[i]
            i += 1

    def __reversed__(self) -> Iterator[Any]:
        i = len(self) - 1
        while 0 <= i < len(self):
            yield self[i]
            i -= 1

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is not slice:
            self.meta.check()
            list.__setitem__(self, index, value)
            place = index.__index__()
            self._touch(place + len(self) if place < 0 else place)
            return
        if _VALUES_FIRST:
            value = list(value)
        start, stop, step = index.indices(len(self))
        values = list(value)  # runs an iterator, which may change this list
        self.meta.check()
        if step == 1:
            start = min(start, len(self))
            stop = max(start, min(stop, len(self)))
            self._splice(start, stop, len(values))
            list.__setitem__(self, slice(start, stop), values)
        else:
            list.__setitem__(self, index, values)
            for place in range(*index.indices(len(self))):
                self._touch(place)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        size = len(self)
        if type(index) is slice:
            for place in sorted(range(*index.indices(size)), reverse=True) if index.step not in (None, 1) else ():
                self._splice(place, place + 1, 0)
            if index.step in (None, 1):
                start, stop, _ = index.indices(size)
                self._splice(start, stop, 0)
        else:
            list.__getitem__(self, index)
            place = index.__index__() % size
            self._splice(place, place + 1, 0)
        list.__delitem__(self, index)

    def __iadd__(self, other: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(other)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        self[:] = list(self) * times
        return self

    def __add__(self, other: Any) -> Any:
        return list(self) + other

    def __radd__(self, other: Any) -> Any:
        return other + list(self) if isinstance(other, list) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return list(self) * times

    __rmul__ = __mul__

    def append(self, value: Any) -> None:
        """As list.append."""
        self.meta.moved  # noqa: B018 - raises once the draft has expired, as `check` does, without a call
        list.append(self, value)

    def extend(self, values: Iterable[Any]) -> None:
        """As list.extend."""
        self.meta.moved  # noqa: B018 - as in `append`
        list.extend(self, list(self) if values is self else values)

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """As list.insert."""
        place, size = as_index(index), len(self)
        place = max(0, place + size) if place < 0 else min(place, size)
        if place < size:
            self._splice(place, place, 1)
        list.insert(self, place, value)

    def pop(self, index: SupportsIndex = -1) -> Any:
        """As list.pop.

        The item stays a draft, and can be put elsewhere in the state.
        """
        place = as_index(index)
        if not len(self):
            raise IndexError("pop from empty list")
        value = self[place]
        del self[place]
        return value

    def remove(self, value: Any) -> None:
        """As list.remove."""
        del self[list.index(self, value)]

    def clear(self) -> None:
        """As list.clear."""
        del self[:]

    def reverse(self) -> None:
        """As list.reverse."""
        self.meta.check()
        self.meta.moved = []  # no item is known to be the base's: `freeze_and_patch` compares them all
        list.reverse(self)

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """As list.sort."""
        list(self)  # drafts every item: list.sort would hand frozen ones to `key`, past __getitem__
        self.meta.check()
        self.meta.moved = []
        list.sort(self, key=key, reverse=reverse)

    def copy(self) -> list[Any]:
        """As list.copy; return a plain list of the same items."""
        return list(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(item, memo) for item in self]

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return list, (list(self),)


def _draft_list(base: FrozenList, scope: Scope) -> DraftList:
    """Return a draft of a frozen list."""
    draft = list.__new__(DraftList)
    list.extend(draft, base)
    draft.meta = Node(base, base.meta, scope)
    scope.drafts.append(draft)
    return draft


DRAFTERS[FrozenList] = _draft_list
DRAFTERS[DraftList] = None
TYPE_NAMES[DraftList] = "list"
add_expired(DraftList)


FEW = 64
"""The number of items up to which `is` for each pair is as fast."""

OTHER, EQUAL, SAME = 0, 1, 2
"""Results of `stands`.

OTHER: some item differs, or may differ. EQUAL: all are the same JSON, perhaps instances of a subclass. SAME: all are
the same objects, or equal plain integers.
"""

_TEXT: frozenset[type] = frozenset({str, type(None)})
"""Types whose values are the same JSON if they are equal."""

_INTEGERS = frozenset({int})


def _kinds_of(base: FrozenList) -> frozenset[type]:
    """Return the types of a frozen list's items, and keep them."""
    try:
        return base.kinds
    except AttributeError:
        base.kinds = frozenset(map(type, base))
        return base.kinds


def stands(old: list[Any], now: list[Any], base: FrozenList) -> int:
    """Return SAME, EQUAL or OTHER for the items of `now` and `old`.

    `old` is `base` or a part of it; `base` knows the types of the items.
    """
    if len(old) != len(now):
        return OTHER
    if len(old) > FEW and (way := _way_to_compare(_kinds_of(base))) is not None:
        if not equal(old, now):
            return OTHER
        return OTHER if way is _INTEGERS and not _all_integers(now) else EQUAL if way is _TEXT else SAME
    return SAME if all(map(is_, list.__iter__(old), list.__iter__(now))) else OTHER


@lru_cache(maxsize=256)
def _way_to_compare(kinds: frozenset[type]) -> frozenset[type] | None:
    """Return the proof in an equal result for items of these types.

    See the table at the head of this file. The empty set: the items are the same objects. `_TEXT`: they are the same
    JSON. `_INTEGERS`: they are the same JSON if all are integers. None: an equal result proves nothing.
    """
    leaves: frozenset[type] = frozenset(kind for kind in kinds if not _by_identity(kind))
    if leaves <= _TEXT:
        return _TEXT if leaves else frozenset()
    return _INTEGERS if kinds == _INTEGERS else None


def _by_identity(kind: type) -> bool:
    """Return whether instances of a class equal themselves alone.

    Call it while BY_IDENTITY is set. A model class with its own `__eq__` does not qualify.
    """
    equality: Any = kind.__eq__
    return equality in (FrozenList.__eq__, FrozenDict.__eq__, StateModel.__eq__)


def _all_integers(values: Any) -> bool:
    """Return whether values that equal integers are integers.

    Only floats and booleans equal integers, besides subclasses of int. In JSON, each float has a `.` or an `e`, and so
    have `true` and `false`. For subclasses orjson raises TypeError.
    """
    try:
        data = orjson.dumps(list.__getitem__(values, slice(None)), option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return False
    return b"e" not in data and b"." not in data
