"""What a branch strategy works with: places of a tree that is explored, and how it grows."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from ..endings import StopReason
from ..loop.decision import Decision

Score = Callable[..., float | Awaitable[float]]
"""Rates a state (`score(state)`), higher is better; sync or async, and it may perform effects."""


@dataclass(eq=False)
class Node:
    """A place of the tree: the state that a candidate has led to.

    `place` names the way there: "" is the branching run's own state, "0.2" what candidate 2 led to at the place that
    candidate 0 had led to. `state` is frozen.
    """

    place: str
    state: Any
    candidates: tuple[Decision, ...]
    """What can be tried from here; empty where the run ended, or was stopped after its number of steps."""
    decision: Decision | None = None
    """The candidate that led here."""
    parent: "Node | None" = field(default=None, repr=False)
    run_id: str = ""
    """The run whose state this is, and at which of its steps."""
    step: int = 0
    stop_reason: StopReason | None = None
    """Why the run ended here; None where it can go on."""
    lost: str | None = None
    """Why the candidate's run failed; such a node has its parent's state, and nothing can be tried from it."""
    score: float | None = None
    """What `Branch.rate` has found."""

    @property
    def depth(self) -> int:
        """How many candidates led here."""
        return 0 if not self.place else self.place.count(".") + 1


class Branch(Protocol):
    """One branch decision, as a strategy sees it."""

    @property
    def root(self) -> Node:
        """Where the run stands; its candidates are those of the decision."""

    @property
    def rng(self) -> Random:
        """Random numbers that depend on the run's seed and this place alone."""

    async def grow(
        self,
        *nodes: Node,
        candidates: Iterable[int] | None = None,
        steps: int | None = None,
        to_next_branch: bool = True,
    ) -> list[Node]:
        """Runs the candidates of one or several nodes as child runs, several at a time, and gives where they led.

        They come in the order of the nodes and their candidates, whatever ended first; `candidates` are the numbers of
        those to run, by default all. A child stops at its next branch decision, so that its node can grow; else
        (`to_next_branch=False`) it decides such branches itself, by the engine's strategy. It also stops after `steps`
        steps. A place grows once: asked again, it gives what is there.
        """

    async def rate(self, *nodes: Node, score: Score) -> list[float]:
        """The nodes' scores, `score(node.state)` each; async scores are asked several at a time.

        A node is rated once: the score is kept as `node.score`. One that is lost has minus infinity, and nobody is
        asked. Raises DecisionError for what is no finite number.
        """

    async def weigh(self, node: Node, score: Score) -> list[float]:
        """`score(node.state, candidate)` for each candidate of a node, none of which is run."""


class BranchStrategy(Protocol):
    """Decides branches. A strategy holds its settings and nothing else: one instance serves many runs at once.

    It must be deterministic: the same scores, the same `branch.rng`, and the same outcomes of effects that it performs,
    give the same choice. Where a budget cuts it short, it is left, and the best finished child is taken: by the scores
    that it has given, and for the rest by its attribute `score`, if it has one.
    """

    async def choose(self, branch: Branch) -> int | Node:
        """The number of the candidate to go on with, or the node whose state is adopted."""
