"""A JSON array that is written item by item."""

from collections.abc import Iterable
from typing import Any, BinaryIO

from .values import dump


def write_array(out: BinaryIO, items: Iterable[Any], before: bytes, after: bytes) -> None:
    """Write items, one at a time, as an array between two texts."""
    out.write(before + b"[")
    for number, item in enumerate(items):
        out.write((b",\n" if number else b"\n") + dump(item))
    out.write(b"\n]" + after)
