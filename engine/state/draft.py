"""What all drafts share: their scope, what each remembers, and how values are drafted as they are reached."""

from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import DraftExpiredError
from .frozen import equal


class Scope:
    """The drafts of one reduce; they live until it ends.

    `within` holds, by id, the plain lists and dicts in which all is drafted, and what stood in them then; None for
    those that are being drafted.
    """

    __slots__ = ("drafts", "within")

    def __init__(self) -> None:
        self.drafts: list[Any] = []
        self.within: dict[int, tuple[Any, list[Any] | None]] = {}


class Node:
    """What a draft remembers: the frozen value it stands for (None for a new model) and what was touched.

    `shape` is the shape of a list or dict, the class of a model. `touched` are the keys, fields, or indices in the
    base that were set or drafted, in that order. `moved` is None while all of the base is in its place; then, for a
    list, the runs of items that still stand for the base's (see `runs`), for a dict, the base's removed keys.

    Both tell what the draft's methods did. What was done past them is found when the draft is resolved.
    """

    __slots__ = ("base", "moved", "scope", "shape", "touched")

    def __init__(self, base: Any, shape: Any, scope: Scope) -> None:
        self.base = base
        self.shape = shape
        self.scope = scope
        self.touched: dict[Any, None] = {}
        self.moved: Any = None

    def check(self) -> None:
        """Raises DraftExpiredError once the draft's reduce has ended (then `ExpiredNode` stands here)."""


class ExpiredNode:
    """What an expired list or dict has in place of its node: methods that were kept, bound, meet it and say so."""

    __slots__ = ("shape",)

    def __init__(self, shape: Any) -> None:
        self.shape = shape

    def __getattr__(self, name: str) -> NoReturn:
        raise DraftExpiredError(getattr(self.shape, "label", "a state"))


Drafter = Callable[[Any, Scope], Any]

DRAFTERS: dict[type, Drafter | None] = {}
"""How a draft of a frozen value is made, by class, None for what needs none; classes are learnt as they are met."""


def draft_of(value: Any, scope: Scope) -> Any:
    """A draft of a frozen value, or None for a value that needs none (leaves, plain containers, drafts)."""
    kind = type(value)
    try:
        make = DRAFTERS[kind]
    except KeyError:
        make = next((DRAFTERS[base] for base in kind.__mro__ if base in DRAFTERS), None)
        DRAFTERS[kind] = make
    return None if make is None else make(value, scope)


def draft_within(value: Any, scope: Scope) -> None:
    """Puts drafts in the places of frozen values within plain lists and dicts that reduce has made.

    So models that were just put into a state can be changed in it, at whatever depth of new lists they stand.
    """
    if type(value) not in _PLAIN:
        return
    held = list(value.values() if type(value) is dict else value)
    known, before = scope.within.get(id(value), (None, held))
    if known is value and (before is None or equal(before, held)):
        return
    scope.within[id(value)] = value, None  # while its items are looked at: it may stand within itself
    deep = False
    for place, item in list(value.items() if type(value) is dict else enumerate(value)):
        if (draft := draft_of(item, scope)) is not None:
            value[place] = draft
        elif type(item) in _PLAIN:
            deep = True
            draft_within(item, scope)
    if deep:
        del scope.within[id(value)]
    else:
        scope.within[id(value)] = value, list(value.values() if type(value) is dict else value)


_PLAIN = frozenset({list, dict})
