"""Whether a draft still holds the very objects of its base: code in C, such as `heapq`, writes past its methods.

Asking of each pair whether it is one object costs some eight times as much as copying a list. `==` of two lists takes
what is the same object as equal unseen, in C, for half of what the copy costs. So it is asked first; where other
objects could have passed as equal, the types of the items tell.
"""

from functools import lru_cache
from operator import is_
from typing import Any

import orjson

from .frozen import FrozenDict, FrozenList, equal
from .model import StateModel

FEW = 64
"""Up to so many items, asking of each pair is as fast."""

OTHER, EQUAL, SAME = 0, 1, 2
"""What items turn out to be: other JSON; the same JSON, maybe of a subclass; the same objects, or no worse."""

_TEXT: frozenset[type] = frozenset({str, type(None)})
"""Types whose values are the same JSON where they are equal."""

_INTEGERS = frozenset({int})


def kinds_of(base: FrozenList | FrozenDict) -> frozenset[type]:
    """The types of the items of a frozen list, or of the values of a frozen dict; found once, then kept."""
    try:
        return base.kinds
    except AttributeError:
        base.kinds = frozenset(map(type, base.values() if isinstance(base, dict) else base))
        return base.kinds


def stands(old: list[Any], now: list[Any], base: FrozenList | FrozenDict) -> int:
    """Whether `now` holds the items of `old`, some of those of `base`: SAME objects, EQUAL ones as JSON, or OTHER."""
    if len(old) != len(now):
        return OTHER
    if len(old) > FEW and (way := _way_to_compare(kinds_of(base))) is not None:
        if not equal(old, now):
            return OTHER
        return OTHER if way is _INTEGERS and not _all_integers(now) else EQUAL if way is _TEXT else SAME
    return SAME if all(map(is_, list.__iter__(old), list.__iter__(now))) else OTHER


@lru_cache(maxsize=256)
def _way_to_compare(kinds: frozenset[type]) -> frozenset[type] | None:
    """What the items that `==` takes as equal can be, but the same objects; None where it says too little."""
    leaves: frozenset[type] = frozenset(kind for kind in kinds if not _by_identity(kind))
    if leaves <= _TEXT:
        return _TEXT if leaves else frozenset()
    return _INTEGERS if kinds == _INTEGERS else None


def _by_identity(kind: type) -> bool:
    """Whether instances of a class equal nothing but themselves while that is what is sought."""
    equality: Any = kind.__eq__
    return equality in (FrozenList.__eq__, FrozenDict.__eq__, StateModel.__eq__)


def _all_integers(values: Any) -> bool:
    """Whether values that equal integers are integers: JSON writes no other number without these letters."""
    try:
        data = orjson.dumps(list.__getitem__(values, slice(None)), option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        return False
    return b"e" not in data and b"." not in data
