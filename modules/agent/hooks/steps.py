"""The steps that stop conditions see."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import overload

from ..events import AgentStep


class Steps(Sequence[AgentStep]):
    """Steps in order: a prefix of a list, then the current turn's.

    The prefix keeps the length that the list had at construction; the list may grow.
    """

    def __init__(self, before: list[AgentStep], last: Sequence[AgentStep] = ()) -> None:
        self._before = before
        self._count = len(before)
        self._last = last

    def __len__(self) -> int:
        return self._count + len(self._last)

    @overload
    def __getitem__(self, place: int) -> AgentStep: ...
    @overload
    def __getitem__(self, place: slice) -> list[AgentStep]: ...
    def __getitem__(self, place: int | slice) -> AgentStep | list[AgentStep]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = place + len(self) if place < 0 else place
        if not 0 <= place < len(self):
            raise IndexError(f"no step {place}: there are {len(self)} steps")
        return self._before[place] if place < self._count else self._last[place - self._count]

    def __iter__(self) -> Iterator[AgentStep]:
        return chain((self._before[i] for i in range(self._count)), self._last)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Steps | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, others: Sequence[AgentStep]) -> list[AgentStep]:
        return [*self, *others]

    def __radd__(self, others: Sequence[AgentStep]) -> list[AgentStep]:
        return [*others, *self]

    def __repr__(self) -> str:
        return repr([*self])
