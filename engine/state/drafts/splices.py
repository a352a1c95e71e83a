"""Tracks the places of the base's items in a changed list.

A run is a stretch of consecutive items that were consecutive in the base, too. A list that has just been drafted is one
run; each insertion or removal (a splice) cuts and shifts runs:

    base            a b c d e        Run(at=0, base=0, size=5)
    del items[1]    a c d e          Run(0, 0, 1), Run(1, 2, 3)
    insert(2, x)    a c x d e        Run(0, 0, 1), Run(1, 2, 1), Run(3, 3, 2)

The gaps between the runs are the changes: here `b` was removed, and `x` was inserted.
"""

from collections.abc import Sequence
from typing import NamedTuple

MOST_RUNS = 64
"""The highest number of runs; a list with more runs counts as rearranged, without any runs.

Each splice looks at every run, so without a limit n splices would cost n squared.
"""


class Run(NamedTuple):
    """A stretch of the base's items: `size` items from `at`, from `base`."""

    at: int
    base: int
    size: int


def spliced(runs: Sequence[Run], start: int, stop: int, count: int) -> list[Run]:
    """Return the runs after `count` items have replaced a slice."""
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
    """Return the base's index of the item at `index`, -1 if new."""
    for at, base, size in runs:
        if at <= index < at + size:
            return base + index - at
    return -1


def index_now(runs: Sequence[Run], index: int) -> int:
    """Return the index of the base's item `index`, -1 if removed."""
    return next((at + index - base for at, base, size in runs if base <= index < base + size), -1)


def gaps(runs: Sequence[Run], base_size: int, size: int) -> list[tuple[int, int, int, int]]:
    """Return the stretches between the runs as (i1, i2, j1, j2).

    `list[j1:j2]` has replaced `base[i1:i2]`. `base_size` and `size` are the lengths of the base and of the list.
    Stretches that are empty on both sides are left out.
    """
    stretches: list[tuple[int, int, int, int]] = []
    i, j = 0, 0
    for at, base, count in [*runs, Run(size, base_size, 0)]:
        if base > i or at > j:
            stretches.append((i, base, j, at))
        i, j = base + count, at + count
    return stretches
