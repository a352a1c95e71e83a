"""Which items of a changed list still stand for which of its base: runs of them, kept up to date by splices."""

from collections.abc import Sequence
from typing import NamedTuple

MOST_RUNS = 64
"""Beyond so many runs a list counts as rearranged, so that many splices of one list do not cost their square."""


class Run(NamedTuple):
    """`size` items from index `at` that stand for those of the base from index `base`."""

    at: int
    base: int
    size: int


def spliced(runs: Sequence[Run], start: int, stop: int, count: int) -> list[Run]:
    """The runs after the items from `start` to `stop` gave way to `count` new ones."""
    shift = count - (stop - start)
    after: list[Run] = []
    for run in runs:
        at, base, size = run
        end = at + size
        if end <= start:
            after.append(run)
        elif at >= stop:
            after.append(Run(at + shift, base, size))
        else:
            if at < start:
                after.append(Run(at, base, start - at))
            if end > stop:
                after.append(Run(stop + shift, base + stop - at, end - stop))
    return after if len(after) <= MOST_RUNS else []


def base_index(runs: Sequence[Run], index: int) -> int:
    """The index in the base of the item at `index`, or -1 for a new item."""
    for at, base, size in runs:
        if at <= index < at + size:
            return base + index - at
    return -1


def gaps(runs: Sequence[Run], base_size: int, size: int) -> list[tuple[int, int, int, int]]:
    """What lies between the runs: `base[i1:i2]` was there, `list[j1:j2]` is there now; empty ones are left out."""
    found: list[tuple[int, int, int, int]] = []
    i, j = 0, 0
    for at, base, count in [*runs, Run(size, base_size, 0)]:
        if base > i or at > j:
            found.append((i, base, j, at))
        i, j = base + count, at + count
    return found
