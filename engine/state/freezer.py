"""The memory of one freezing pass: the path and resolved drafts."""

from typing import Any

from ...errors import CircularValueError, StateValueError

MAX_DEPTH = 200
"""The deepest nesting of a document.

Pydantic's JSON reader refuses more; orjson's own limit is a little higher.
"""


class Freezer:
    """The memory of one pass that freezes values.

    Attributes:
        stack: The containers around the value that is being frozen, outermost first. Code that enters a container
            leaves it with `stack.pop()`, or by an error, to whose path it adds the container's key or index.
        resolved: The frozen values of drafts, by the draft's `id`.
        consuming: Whether this is the last pass of a reduce, which may take drafts apart.
        alone: The ids of list and dict drafts to which nobody else refers. A consuming pass turns such a draft itself
            into its frozen value, without a copy.
    """

    __slots__ = ("alone", "consuming", "resolved", "stack")

    def __init__(self, consuming: bool = False) -> None:
        self.consuming = consuming
        self.stack: list[Any] = []
        self.resolved: dict[int, Any] = {}
        self.alone: set[int] = set()

    def enter(self, value: object) -> None:
        """Enter a container; raise the error of `too_deep` at the limit.

        A cycle has no end, so the limit finds cycles, too.
        """
        self.stack.append(value)
        if len(self.stack) > MAX_DEPTH:
            raise self.too_deep()

    def too_deep(self) -> StateValueError:
        """Return the error for too deep a stack, or a cycle."""
        first: dict[int, int] = {}
        for level, value in enumerate(self.stack):
            if id(value) in first:
                return CircularValueError(beyond=len(self.stack) - 1 - level)
            first[id(value)] = level
        return StateValueError(f"nested deeper than {MAX_DEPTH} levels")
