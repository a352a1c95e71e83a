"""One pass that freezes values: what it stands inside of, and what it has met so far."""

from typing import Any

from ..errors import CircularValueError, StateValueError

MAX_DEPTH = 200
"""How deep a document may nest: the limit of pydantic's JSON reader; orjson's own is a little above."""


class Freezer:
    """The memory of one pass.

    `stack` holds the containers that the pass stands inside of; every level entered is left by `pop`, or unwound by an
    error that adds the level's token to its path. `resolved` maps a draft's id to its frozen value.

    The last pass of a reduce is `consuming`: it may take drafts apart, and the `alone` ones, known by id, which nobody
    else refers to, become their own frozen values.
    """

    __slots__ = ("alone", "consuming", "resolved", "stack")

    def __init__(self, consuming: bool = False) -> None:
        self.consuming = consuming
        self.stack: list[Any] = []
        self.resolved: dict[int, Any] = {}
        self.alone: set[int] = set()

    def enter(self, value: object) -> None:
        """Steps into a container; refuses cycles and what nests too deep to be read again."""
        self.stack.append(value)
        if len(self.stack) > MAX_DEPTH:
            raise self.too_deep()

    def too_deep(self) -> StateValueError:
        """The error for a stack that has become too high: a cycle, if it holds anything twice."""
        first: dict[int, int] = {}
        for level, value in enumerate(self.stack):
            if id(value) in first:
                return CircularValueError(beyond=len(self.stack) - 1 - level)
            first[id(value)] = level
        return StateValueError(f"nested deeper than {MAX_DEPTH} levels")
