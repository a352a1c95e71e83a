"""What all drafts share: their scope, what each remembers, and how values are drafted as they are reached."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Scope:
    """The drafts of one reduce; they live until it ends. `loans` are the lists that were lent and not given back."""

    __slots__ = ("drafts", "loans")

    def __init__(self) -> None:
        self.drafts: list[Any] = []
        self.loans: list[Loan] = []


class Loan(NamedTuple):
    """A committed list that became the draft itself, as nobody else could see it: so that appending copies nothing.

    Its first `size` items are what was committed; `values[name]` is where its state holds it.
    """

    list: Any
    size: int
    values: dict[str, Any]
    name: str


class Node:
    """What a draft remembers: the frozen value it stands for (None for a new model) and what was touched.

    `shape` is the shape of a list or dict, the class of a model. `touched` are the keys, fields, or indices in the
    base that were set or drafted, in that order. `moved` is None while all of the base is in its place; then, for a
    list, the runs of items that still stand for the base's (see `runs`), for a dict, the base's removed keys. `loan`
    is set while the draft is the committed list itself, and `base` not there; `sole` says that the engine alone holds
    the state which a model draft stands for.
    """

    __slots__ = ("base", "loan", "moved", "scope", "shape", "sole", "touched")

    def __init__(self, base: Any, shape: Any, scope: Scope) -> None:
        self.base = base
        self.shape = shape
        self.scope = scope
        self.touched: dict[Any, None] = {}
        self.moved: Any = None
        self.loan: Loan | None = None
        self.sole = False


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
