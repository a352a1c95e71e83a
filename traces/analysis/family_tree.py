"""A family's tree as data: runs, branches, candidates, forks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Kin:
    """One run of a family, with the runs that come from it.

    `parent` is the header's: `run` and `step`, and also `candidate` for a candidate's run, `call` and `name` for the
    child run of a call, or `edit` for a fork. `calls` are the child runs that its own calls have started, in call
    order. `status` is "missing" or "corrupt" if the trace cannot be read, and `error` says why. `pid` is the process
    that is writing the trace; it is None if no process does, or the system does not say. `caller` is the call in which
    its parent has started it, such as a tool; None for a run that no call within a call has started.
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
    caller: str | None = None


@dataclass(frozen=True, slots=True)
class KinBranch:
    """A branch of a run.

    `strategy` is None while the branch is undecided. In `candidates`, each is followed by those that start at its
    state. `cut` is the stop reason that cut the exploration short, and `stop_reason` that of the adopted child.
    """

    step: int
    strategy: Mapping[str, Any] | None
    candidates: tuple["KinCandidate", ...]
    cut: str | None = None
    stop_reason: str | None = None

    @property
    def chosen(self) -> "KinCandidate | None":
        """The candidate that was chosen; None if there is none."""
        return next((candidate for candidate in self.candidates if candidate.chosen), None)

    def below(self, place: str = "") -> tuple["KinCandidate", ...]:
        """Return the candidates at a place; "" is the run's state."""
        return tuple(candidate for candidate in self.candidates if candidate.place.rpartition(".")[0] == place)


@dataclass(frozen=True, slots=True)
class KinCandidate:
    """One candidate of a branch.

    `place` 0.2 is candidate 2 of the branch to which candidate 0 led. `run` is the child run of the candidate, if there
    is one; `lost` says why this run failed. `on_the_way` is true for the `chosen` candidate and for those that led to
    it.
    """

    place: str
    decision: Mapping[str, Any] | None
    score: float | None
    lost: str | None
    chosen: bool
    on_the_way: bool
    run: Kin | None


@dataclass(frozen=True, slots=True)
class FamilyTree:
    """A `run` with its descendants, and its `ancestors`, root first."""

    run: Kin
    ancestors: tuple[Kin, ...]
