"""What a family consists of: runs, the branches of each with their candidates, the runs inside them, the forks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Kin:
    """One run of a family, with what came from it.

    `parent` is what its header says of where it came from: `run`, `step`, and `candidate` of an explored child, `call`
    and `name` of one that a call has begun, or `edit` of a fork. `calls` are the runs that calls of this one have
    begun, in the calls' order. `status` is "missing" or "corrupt" where the trace can't be read, and `error` says why;
    `pid` is the process that writes to it now, where the system tells.
    """

    run_id: str
    path: Path | None
    status: str
    stop_reason: str | None = None
    steps: int = 0
    parent: Mapping[str, Any] | None = None
    pid: int | None = None
    error: str | None = None
    branches: tuple["KinBranch", ...] = ()
    forks: tuple["Kin", ...] = ()
    calls: tuple["Kin", ...] = ()


@dataclass(frozen=True, slots=True)
class KinBranch:
    """A branch of a run, decided or under way (then `strategy` is None).

    `candidates` are in the tree's order, each followed by those that start from where it led. `cut` is the stop reason
    that cut the exploration short, `stop_reason` that of the child that was adopted.
    """

    step: int
    strategy: Mapping[str, Any] | None
    candidates: tuple["KinCandidate", ...]
    cut: str | None = None
    stop_reason: str | None = None

    @property
    def chosen(self) -> "KinCandidate | None":
        """The candidate that was chosen."""
        return next((candidate for candidate in self.candidates if candidate.chosen), None)

    def below(self, place: str = "") -> tuple["KinCandidate", ...]:
        """Give the candidates that start from a place; "" is the run's own state."""
        return tuple(candidate for candidate in self.candidates if candidate.place.rpartition(".")[0] == place)


@dataclass(frozen=True, slots=True)
class KinCandidate:
    """One of a branch's candidates: `place` 0.2 is candidate 2 of the branch that candidate 0 led to.

    `run` is the child that carried it out, if one did; `lost` says why it dropped out. `on_the_way` is true for the one
    that was `chosen` and for those that led there.
    """

    place: str
    decision: Mapping[str, Any] | None
    score: float | None
    lost: str | None
    chosen: bool
    on_the_way: bool
    run: Kin | None


@dataclass(frozen=True, slots=True)
class Family:
    """The family of a run: `run` with all that came from it, and the runs it came from, the eldest first."""

    run: Kin
    ancestors: tuple[Kin, ...]
