"""A run's family: what was branched off and forked from it, and what it came from; read from heads and tails."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import TraceCorruptError, TraceError, TraceNotFoundError
from .lock import lock_holder
from .record import Record
from .relatives import branches_folder, headers_among, headers_in
from .trace import Trace

_BRANCH = b'\n{"kind":"branch",'
_DECIDE = b'\n{"kind":"decide",'
_BAD = (TraceError, OSError, KeyError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True, slots=True)
class Kin:
    """One run of a family, with what came from it.

    `parent` is what its header says of where it came from: `run`, `step`, and `candidate` of a child or `edit` of a
    fork. `status` is "missing" or "corrupt" where the trace can't be read, and `error` says why; `pid` is the process
    that writes to it now, where the system tells.
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


def family(trace: Trace) -> Family:
    """Read the family of a run.

    Forks are found in the folder of the traces; children and ancestors where `Trace.relative` finds them. A relative
    whose trace is missing or damaged is shown as such.
    """
    return Family(_Reader().kin(trace), tuple(_ancestors(trace))[::-1])


def _ancestors(trace: Trace) -> Iterator[Kin]:
    seen = {trace.run_id}
    while (link := _link(trace)) is not None and link["run"] not in seen:
        seen.add(link["run"])
        try:
            trace = trace.relative(link["run"])
            yield _facts(trace)
        except _BAD as error:
            yield _unreadable(link["run"], error)
            return


class _Reader:
    """Reads one family; each run is met once, and each folder searched for forks once."""

    def __init__(self) -> None:
        self._met: set[str] = set()
        self._searched: set[str | int] = set()
        self._forks: dict[str, list[str]] = {}

    def kin(self, trace: Trace) -> Kin:
        """Give a run with all that came from it."""
        self._met.add(trace.run_id)
        self._search(trace)
        branches = tuple(self._branches(trace))
        forks = tuple(self._relative(trace, name)[0] for name in self._forks.get(trace.run_id, ()))
        return _facts(trace, branches, forks)

    def _relative(self, trace: Trace, run_id: str) -> tuple[Kin, Mapping[str, Any] | None]:
        """Give a run that came from this one, with the decision that it began with."""
        if run_id in self._met:
            return Kin(run_id, None, "missing", error="the run comes from itself"), None
        try:
            found = trace.relative(run_id)
            return self.kin(found), _first_decision(found)
        except _BAD as error:
            return _unreadable(run_id, error), None

    def _search(self, trace: Trace) -> None:
        """Look for forks in the folder of the traces and in that of the branches."""
        places: dict[str | int, Iterator[tuple[str, dict[str, Any]]]]
        if trace.path is None:
            places = {id(trace.memory().family): headers_among(trace.memory().family)}
        else:
            below = branches_folder(trace.path)
            places = {str(folder): headers_in(folder) for folder in (below.parent, below)}
        for place, headers in places.items():
            if place in self._searched:
                continue
            self._searched.add(place)
            for run_id, header in headers:
                link = header.get("parent")
                if isinstance(link, dict) and "candidate" not in link:
                    self._forks.setdefault(str(link.get("run")), []).append(run_id)

    def _branches(self, trace: Trace) -> Iterator[KinBranch]:
        """Put together what was opened in a step with the choice that ended it."""
        opened: list[Record] = []
        for at in _lines(trace, _BRANCH):
            record = trace.record_at(at)
            if opened and opened[-1].step != record.step:
                yield self._branch(trace, opened, None, at)
                opened = []
            if "chosen" in record:
                yield self._branch(trace, opened, record, at)
                opened = []
            else:
                opened.append(record)
        if opened:
            yield self._branch(trace, opened, None, trace.size)

    def _branch(self, trace: Trace, opened: list[Record], end: Record | None, at: int) -> KinBranch:
        step = (end or opened[0]).step
        decided = trace.data.rfind(_DECIDE, 0, at)
        decision: Mapping[str, Any] = {}
        if decided >= 0 and (record := trace.record_at(decided + 1)).step == step:
            decision = record["decision"]
        several = decision.get("candidates")
        runs = list[tuple[str, Kin | None, Mapping[str, Any] | None]]()
        for record in opened:
            head = record["opened"]["place"]
            for index, run_id in enumerate(record["opened"]["children"]):
                kin, first = self._relative(trace, run_id)
                number = (kin.parent or {}).get("candidate", index)
                runs.append((f"{head}.{number}" if head else str(number), kin, first))
        places = {place for place, _, _ in runs}
        for index in range(several if isinstance(several, int) else len(several or ())):
            if str(index) not in places:
                runs.append((str(index), None, None))
        return _decided(step, runs, several if isinstance(several, list) else [], end)


def _decided(
    step: int,
    runs: list[tuple[str, Kin | None, Mapping[str, Any] | None]],
    several: list[Mapping[str, Any]],
    end: Record | None,
) -> KinBranch:
    chosen = end["chosen"] if end is not None else {}
    scores, lost = ((end.get(name) or {}) if end is not None else {} for name in ("scores", "lost"))
    goal = chosen.get("place", str(chosen["candidate"]) if "candidate" in chosen else None)
    if not any(kin is not None for _, kin, _ in runs):  # a branch within a branch: all its places have one beginning
        scores, lost = ({place.rpartition(".")[2]: value for place, value in each.items()} for each in (scores, lost))
    candidates = [
        KinCandidate(
            place=place,
            decision=first or (several[int(place)] if place.isdecimal() and int(place) < len(several) else None),
            score=scores.get(place),
            lost=lost.get(place),
            chosen=place == goal and (kin is None or chosen.get("run", kin.run_id) == kin.run_id),
            on_the_way=goal is not None and f"{goal}.".startswith(f"{place}."),
            run=kin,
        )
        for place, kin, first in sorted(runs, key=lambda run: _order(run[0]))
    ]
    if end is None:
        return KinBranch(step, None, tuple(candidates))
    return KinBranch(step, end["strategy"], tuple(candidates), end.get("cut"), chosen.get("stop_reason"))


def _order(place: str) -> list[tuple[int, str]]:
    return [(int(number) if number.isdecimal() else -1, number) for number in place.split(".")]


def _facts(trace: Trace, branches: tuple[KinBranch, ...] = (), forks: tuple[Kin, ...] = ()) -> Kin:
    status = trace.status
    writes = status in ("interrupted", "waiting") and trace.path is not None
    return Kin(
        run_id=trace.run_id,
        path=trace.path,
        status=status,
        stop_reason=trace.stop_reason,
        steps=trace.step_count,
        parent=_link(trace),
        pid=lock_holder(trace.path) if writes and trace.path is not None else None,
        branches=branches,
        forks=forks,
    )


def _link(trace: Trace) -> Mapping[str, Any] | None:
    """Give where a run came from; nothing in a file that holds no header yet."""
    return trace.header.get("parent") if trace.size else None


def _unreadable(run_id: str, error: Exception) -> Kin:
    path = getattr(error, "path", None)
    if isinstance(error, TraceNotFoundError):
        return Kin(run_id, path, "missing", error=str(error))
    reason = error.reason if isinstance(error, TraceCorruptError) else f"{type(error).__name__}: {error}"
    return Kin(run_id, path, "corrupt", error=reason)


def _first_decision(trace: Trace) -> Mapping[str, Any] | None:
    """Give the candidate that a child began with."""
    at = trace.data.find(_DECIDE, 0, trace.size)
    if at < 0:
        return None
    record = trace.record_at(at + 1)
    decision: Mapping[str, Any] | None = record["decision"] if "candidate" in record else None
    return decision


def _lines(trace: Trace, start: bytes) -> Iterator[int]:
    at = trace.data.find(start, 0, trace.size)
    while at >= 0:
        yield at + 1
        at = trace.data.find(start, at + 1, trace.size)
