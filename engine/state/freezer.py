"""The memory of one freezing pass: the path and resolved drafts."""

from functools import cached_property
from typing import Any

from ...errors import CircularValueError, StateValueError

MAX_DEPTH = 200
"""The deepest nesting of a document.

Pydantic's JSON reader refuses more; orjson's own limit is a little higher.
"""


class Freezer(list[Any]):
    """One pass that freezes values: a stack of containers.

    The items are the containers around the current value, outermost first. Code that enters a container appends it,
    and leaves it with `pop()`, or by an error, to whose path it adds the container's key or index. The rest of the
    memory is made only when a draft is met: most passes freeze one small value, and several run in each step.
    """

    consuming = False
    """Whether this is the last pass of a reduce, which may take drafts apart."""

    @classmethod
    def of_commit(cls) -> "Freezer":
        """Return the last pass of a reduce."""
        freezer = cls()
        freezer.consuming = True
        freezer.resolved = {}  # at once, since every commit has drafts
        return freezer

    @cached_property
    def resolved(self) -> dict[int, Any]:
        """The frozen values of drafts, by the draft's `id`."""
        return {}

    def enter(self, value: object) -> None:
        """Enter a container; raise the error of `too_deep` at the limit.

        A cycle has no end, so the limit finds cycles, too.
        """
        self.append(value)
        if len(self) > MAX_DEPTH:
            raise self.too_deep()

    def too_deep(self) -> StateValueError:
        """Return the error for too deep a stack, or a cycle."""
        first: dict[int, int] = {}
        for level, value in enumerate(self):
            if id(value) in first:
                return CircularValueError(beyond=len(self) - 1 - level)
            first[id(value)] = level
        return StateValueError(f"nested deeper than {MAX_DEPTH} levels")
