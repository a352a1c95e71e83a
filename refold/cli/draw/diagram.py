"""A diagram: boxes in rows, and arrows between them.

All text may come from strangers, so the writers escape it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ..render.text import brief

Kind = Literal["hook", "world", "engine", "end"]
"""The kinds of boxes: the author's hook, an effect on the world, the engine's work, the end of a run."""
LINE = 60
"""The largest number of characters in a line of a box."""


@dataclass(frozen=True, slots=True)
class Node:
    """A box: its first line is its title."""

    id: str
    lines: tuple[str, ...]
    kind: Kind = "engine"

    @classmethod
    def of(cls, id: str, kind: Kind, *lines: str) -> "Node":
        """Return a box whose lines are safe to print, and cut."""
        return cls(id, tuple(brief(line, LINE) for line in lines), kind)


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from one box to another."""

    source: str
    target: str
    label: str = ""


@dataclass(slots=True)
class Diagram:
    """Rows of boxes, from the top, and arrows between them.

    refold makes the boxes' ids.
    """

    title: str
    rows: list[list[Node]] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def row(self, *nodes: Node) -> None:
        """Add a row."""
        self.rows.append(list(nodes))

    def connect(self, pairs: Iterable[tuple[str, str, str]]) -> None:
        """Add arrows: source, target, label."""
        self.edges += [Edge(*pair) for pair in pairs]
