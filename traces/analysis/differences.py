"""The smallest parts in which two JSON values differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..json_patch.apply import escape, same_json

Twins = tuple[tuple[str, str], ...]
"""Pairs of a text of the left header and one of the right that count as equal: run ids or objectives, for example."""


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()
"""The value of a difference on the side whose trace does not have it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs: a JSON Pointer and both values.

    The pointer starts at the phase. A missing value is `ABSENT`.
    """

    path: str
    left: Any
    right: Any

    def __str__(self) -> str:
        return f"{self.path or '/'}: {_short(self.left)} | {_short(self.right)}"


def differences(
    left: Any, right: Any, path: str = "", ignore: frozenset[str] = frozenset(), twins: Twins = ()
) -> Iterator[Difference]:
    """Yield the smallest parts in which two JSON values differ.

    Members named in `ignore` are left out. Texts do not differ if they are equal once each of `twins` counts as one
    text.
    """
    if left is right:
        return
    if isinstance(left, dict) and isinstance(right, dict):
        for name in left | right:
            if name not in ignore:
                yield from differences(
                    left.get(name, ABSENT), right.get(name, ABSENT), f"{path}/{escape(str(name))}", ignore, twins
                )
    elif isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            a = left[index] if index < len(left) else ABSENT
            b = right[index] if index < len(right) else ABSENT
            yield from differences(a, b, f"{path}/{index}", ignore, twins)
    elif not same_json(left, right) and not _are_twins(left, right, twins):
        yield Difference(path, left, right)


def _are_twins(left: Any, right: Any, twins: Twins) -> bool:
    """Return whether two texts are equal once twins are replaced."""
    if not (twins and isinstance(left, str) and isinstance(right, str)):
        return False
    for one, other in twins:
        left = left.replace(one, other)
    return bool(left == right)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
