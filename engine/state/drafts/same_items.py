"""A fast check that a list still holds another's very objects.

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

from functools import lru_cache
from operator import is_
from typing import Any

import orjson

from ..frozen import FrozenDict, FrozenList, equal
from ..model import StateModel

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
