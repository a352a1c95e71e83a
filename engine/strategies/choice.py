"""What a strategy has chosen: whether it can be carried out, and how the trace tells it."""

from collections.abc import Collection, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

from ..errors import DecisionError, ExplorationError
from .protocol import BranchStrategy, Node


def checked_choice(strategy: BranchStrategy, chosen: Any, nodes: Mapping[str, Node]) -> dict[str, Any]:
    """The choice as a record's member: the number of a candidate, or the run and place of the node to adopt.

    `nodes` are those of the exploration, by place. Raises ExplorationError where every candidate that was run has
    failed, DecisionError for what is no choice.
    """
    name, root = type(strategy).__name__, nodes[""]
    if type(chosen) is int and 0 <= chosen < len(root.candidates):
        return {"candidate": chosen}
    if isinstance(chosen, Node) and chosen is not root and chosen.lost is None and nodes.get(chosen.place) is chosen:
        return {"run": chosen.run_id, "place": chosen.place, "stop_reason": chosen.stop_reason}
    grown = in_order(node for node in nodes.values() if node is not root)
    lost = {node.place: node.lost for node in grown if node.lost is not None}
    took_lost = isinstance(chosen, Node) and chosen.lost is not None
    if lost and (chosen is None or chosen is root or (took_lost and len(lost) == len(grown))):
        raise ExplorationError(lost)
    if took_lost:
        raise DecisionError(f"{name} chose candidate {chosen.place}, which failed: {chosen.lost}")
    raise DecisionError(
        f"{name}.choose returned {chosen!r:.100}; it must return the number of a candidate "
        f"(0 to {len(root.candidates) - 1}) or a node that grew"
    )


def verdict(
    strategy: BranchStrategy,
    choice: Mapping[str, Any],
    nodes: Collection[Node],
    weights: Mapping[str, float],
    cut: str | None,
) -> dict[str, Any]:
    """The members of the record that ends a branch."""
    tree = in_order(nodes)
    return {
        "strategy": described(strategy),
        "chosen": choice,
        "scores": {**weights, **{node.place: node.score for node in tree if node.score is not None}},
        "lost": {node.place: node.lost for node in tree if node.lost is not None},
        "cut": cut,
    }


def in_order(nodes: Any) -> list[Node]:
    """The nodes by their places, whenever they were made."""
    return sorted(nodes, key=lambda node: [int(number) for number in node.place.split(".")] if node.place else [])


def described(strategy: BranchStrategy) -> dict[str, Any]:
    """A strategy as a trace tells it: its class and its settings, functions by their names."""
    form: dict[str, Any] = {"name": type(strategy).__name__}
    settings: tuple[Field[Any], ...] = fields(strategy) if is_dataclass(strategy) else ()
    for each in settings:
        value = getattr(strategy, each.name)
        plain = value is None or isinstance(value, str | int | float | bool)
        form[each.name] = value if plain else getattr(value, "__qualname__", type(value).__name__)
    return form
