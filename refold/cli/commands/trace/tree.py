"""`refold trace tree`: draw a run's family.

A family is a run with its branches and candidates, child runs, forks and ancestors.
"""

from pathlib import Path
from typing import Any

from rich.text import Text
from rich.tree import Tree

from ....traces import FamilyTree, Trace, family
from ....traces.analysis.family_tree import Kin, KinBranch
from ....traces.stores import RunRef
from ...render.output import console, is_terminal, say, write_json
from ...render.tree_lines import ancestor_lines, kin_text, standing
from ...render.tree_parts import Parts

_GUIDE = 4
_ROOM = 44
"""The number of columns that a line needs after its guides. Deeper levels are counted and not drawn."""
_WIDE = 100_000


def show_tree(path: Path | RunRef, full: bool, as_json: bool) -> int:
    """Draw the family of a run, abbreviated unless `full`; return 0."""
    found = family(Trace.load(path))
    if as_json:
        write_json(_json(found))
        return 0
    out = console()
    deepest = None if full else (out.width - _ROOM) // _GUIDE if is_terminal() else _ROOM
    tree, depth = draw(found, Parts(full, found.run.run_id), None if deepest is None else max(3, deepest))
    if not is_terminal():
        out.width = _WIDE  # lines are broken only at a terminal
    elif full:
        out.width = max(out.width, depth * _GUIDE + _ROOM)
    say(out, *ancestor_lines(found, full))
    out.print(tree, crop=False)
    return 0


def draw(found: FamilyTree, parts: Parts, deepest: int | None) -> tuple[Tree, int]:
    """Return the tree, at most `deepest` levels deep, and its levels' number."""
    tree = Tree(kin_text(found.run), guide_style="dim", highlight=False)
    waiting, levels = [(tree, found.run, 1)], 0
    todo: list[tuple[Tree, Any, int]] = list(waiting)
    while todo:  # no recursion: a family can be deeper than Python's recursion limit
        node, item, level = todo.pop()
        below = parts.of(item)
        if below and deepest is not None and level > deepest:
            node.add(Text("… more below; --full draws it", "dim"))
            continue
        for text, sub in below:
            levels = max(levels, level)
            branch = node.add(text)
            if sub is not None:
                todo.append((branch, sub, level + 1))
    return tree, levels


def _json(found: FamilyTree) -> dict[str, Any]:
    """Return all runs in one list.

    Each run has the ids of its children and forks. The list is flat because families can be deeper than JSON readers
    can nest.
    """
    runs: dict[str, Kin] = {}
    todo = [found.run, *found.ancestors]
    while todo:
        kin = todo.pop()
        if kin.run_id not in runs:
            runs[kin.run_id] = kin
            todo += [*kin.forks, *kin.calls]
            todo += [each.run for branch in kin.branches for each in branch.candidates if each.run is not None]
    ancestors = [kin.run_id for kin in found.ancestors]
    return {
        "run_id": found.run.run_id,
        "ancestors": ancestors,
        "runs": [_kin_json(runs[name]) for name in sorted(runs)],
    }


def _kin_json(kin: Kin) -> dict[str, Any]:
    doc = {name: getattr(kin, name) for name in ("run_id", "stop_reason", "steps", "parent", "pid", "error")}
    return {
        **doc,
        "path": str(kin.path) if kin.path is not None else None,
        "status": standing(kin),
        "branches": [_branch_json(branch) for branch in kin.branches],
        "forks": [fork.run_id for fork in kin.forks],
        "calls": [child.run_id for child in kin.calls],
    }


def _branch_json(branch: KinBranch) -> dict[str, Any]:
    candidates = []
    for each in branch.candidates:
        doc = {name: getattr(each, name) for name in ("place", "decision", "score", "lost", "chosen", "on_the_way")}
        candidates.append({**doc, "run": each.run.run_id if each.run is not None else None})
    chosen = branch.chosen.place if branch.chosen is not None else None
    facts = {name: getattr(branch, name) for name in ("step", "strategy", "cut", "stop_reason")}
    return {**facts, "chosen": chosen, "candidates": candidates}
