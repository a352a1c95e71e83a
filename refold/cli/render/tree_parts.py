"""The structure of a family's tree: drawn and counted lines."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.text import Text

from ...traces.analysis.family_tree import Kin, KinBranch, KinCandidate
from .text import count_text
from .tree_lines import branch_text, candidate_text, child_text, fork_text, score_text, standing

SHOWN = 8
"""The largest number of lines of one kind below one line, without `--full`."""
_LARGE = 24
"""A branch with more candidates than this is drawn in full only on the path to the chosen candidate."""

Part = tuple[Text, Any]


@dataclass
class _Place:
    """A place in a branch's tree, with the candidates that start there."""

    branch: KinBranch
    place: str
    tree: dict[str, list[KinCandidate]] = field(repr=False)


@dataclass
class _At:
    """A candidate of a branch.

    Below it are the candidates that start from its state, and its run's own lines.
    """

    candidate: KinCandidate
    place: _Place


class Parts:
    """The lines below a run, a branch or a candidate.

    Each part is a line and the item to pass to `of` for the lines below that line, or None.
    """

    def __init__(self, full: bool, root: str) -> None:
        self._full = full
        self._root = "" if full else root

    def of(self, item: Any) -> list[Part]:
        """Return the lines below the run or an earlier part's item."""
        if isinstance(item, Kin):
            return self._of_run(item)
        if isinstance(item, _At):
            below = self._of_place(item.place)
            return [*below, *(self._of_run(item.candidate.run) if item.candidate.run is not None else ())]
        assert isinstance(item, _Place)
        return self._of_place(item)

    def _of_run(self, kin: Kin) -> list[Part]:
        parts: list[tuple[int, Part]] = []
        for branch in kin.branches:
            tree: dict[str, list[KinCandidate]] = {}
            for candidate in branch.candidates:
                tree.setdefault(candidate.place.rpartition(".")[0], []).append(candidate)
            parts.append((branch.step, (branch_text(branch), _Place(branch, "", tree))))
        forks = sorted(kin.forks, key=lambda fork: (_step(fork), fork.run_id))
        shown = forks if self._full else forks[:SHOWN]
        parts += [(_step(child), (child_text(child, self._root), child)) for child in kin.calls]
        parts += [(_step(fork), (fork_text(fork), fork)) for fork in shown]
        parts.sort(key=lambda part: part[0])
        lines = [part for _, part in parts]
        if not self._full and len(lines) > 2 * SHOWN:
            left = Text(f"… {len(lines) - 2 * SHOWN} more; --full draws them", "dim")
            lines[SHOWN:-SHOWN] = [(left, None)]
        if len(shown) < len(forks):
            lines.append((Text(f"… {count_text(len(forks) - len(shown), 'more fork')}", "dim"), None))
        return lines

    def _of_place(self, place: _Place) -> list[Part]:
        below = place.tree.get(place.place, [])
        shown = below if self._full else self._shown(below, place)
        parts: list[Part] = [
            (candidate_text(each, self._root), _At(each, replace(place, place=each.place))) for each in shown
        ]
        if len(shown) < len(below):
            drawn = {id(each) for each in shown}
            parts.append((_rest([each for each in below if id(each) not in drawn], bool(shown)), None))
        return parts

    def _shown(self, below: Sequence[KinCandidate], place: _Place) -> list[KinCandidate]:
        """Return the candidates on the path to the choice, and the best.

        A large branch shows only the path.
        """
        large = len(place.branch.candidates) > _LARGE
        off = place.place and place.branch.chosen is not None and not any(each.on_the_way for each in below)
        number = 0 if large and off else SHOWN
        if len(below) <= number + 1:
            return list(below)
        best = sorted(below, key=lambda each: (not each.on_the_way, _badness(each), each.lost is not None))[:number]
        kept = {id(each) for each in best}
        return [each for each in below if id(each) in kept]


def _step(kin: Kin) -> int:
    step = (kin.parent or {}).get("step")
    return step if isinstance(step, int) else 0


def _badness(candidate: KinCandidate) -> float:
    score = candidate.score
    return -score if isinstance(score, int | float) else float("inf")


def _rest(left: Sequence[KinCandidate], more: bool) -> Text:
    counts = Counter("lost" if each.lost else standing(each.run) if each.run else "not explored" for each in left)
    scores = [each.score for each in left if isinstance(each.score, int | float)]
    said = ", ".join(f"{number} {what}" for what, number in counts.most_common())
    least, most = (score_text(each(scores)) for each in (min, max)) if scores else ("", "")
    ranged = "" if not scores else f"; score {least}" if least == most else f"; scores {least} to {most}"
    return Text(f"… {f'{len(left)} more' if more else count_text(len(left), 'candidate')}: {said}{ranged}", "dim")
