"""First states by reference: the state of another run.

A candidate's run starts at a state of another run, and its trace does not repeat this state: its first snapshot has a
`base` (a run and a step) in place of a `state`. The other run may itself start by reference, and so on up to the root.
The states are folded from the root down, each on top of the one before. Many candidates start at the same few states,
so the most recent states are cached.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import TraceCorruptError, TraceError, TraceNotFoundError
from ..file.lines import Lines
from .fold import Fold, count_commits, plan_state, record_end

_FIRST_SNAPSHOT = b'\n{"kind":"snapshot",'
_KEPT = 256
_POINTERS = 250_000
"""How many pointers the cached documents may hold beyond what they share: two megabytes, for a family of any size."""
_NONE = object()


@dataclass(frozen=True, slots=True)
class Origin:
    """A reference to state `step` of another run.

    It means the state as of the record with this `hash`, or as of now if the hash is None.
    """

    run: str
    step: int
    hash: str | None


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a family: its lines and its relatives.

    `find` raises `TraceNotFoundError` for a missing run.
    """

    run_id: str
    lines: Lines
    find: Callable[[str], "Member"]


def origin_of(lines: Lines) -> Origin | None:
    """Return the reference to the first state of these lines.

    Returns None if the lines hold their first state themselves.
    """
    at = lines.data.find(_FIRST_SNAPSHOT, 0, lines.end)
    if at < 0:
        return None
    snapshot = lines.record_at(at + 1)
    if "state" in snapshot:
        return None
    run, step = snapshot["base"]["run"], snapshot["base"]["step"]
    parent = lines.record_at(0).get("parent") or {}
    known = (parent.get("run"), parent.get("step")) == (run, step)
    return Origin(run, step, parent.get("hash") if known else None)


class Bases:
    """A cache of first states, for the runs of one family.

    The documents share their unchanged parts with each other and with every caller: do not change them. A state is
    cached only if its reference has the hash of a record, which covers everything before that record. Without a hash,
    the other run may have continued and have a different state by now.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Origin, Any] = OrderedDict()
        self._weights: dict[Origin, int] = {}
        self._weight = 0
        self._lock = threading.Lock()

    def first_document(self, member: Member) -> Any:
        """Return the first state of a run that starts from another run.

        All runs on the way up to the root are folded, the root first. Raises `TraceNotFoundError` if one of them, or
        its state, is missing, and `TraceCorruptError` if one is corrupt.
        """
        folds: list[tuple[Origin, Fold]] = []
        seen = {member.run_id}
        doc: Any = _NONE
        while (origin := origin_of(member.lines)) is not None:
            doc = self._get(origin)
            if doc is not _NONE:
                break
            if origin.run in seen:
                raise TraceError(f"run {origin.run} starts, by way of other runs, with a state of its own")
            seen.add(origin.run)
            member, fold = _fold_of(member, origin)
            folds.append((origin, fold))
            if not fold.begins_elsewhere:
                break
        if doc is _NONE and (not folds or folds[-1][1].begins_elsewhere):
            reason = "only the first snapshot may refer to a state of another run"
            raise TraceCorruptError(reason, _later_base(member.lines), path=member.lines.path)
        for origin, fold in reversed(folds):
            doc = fold.run_sharing(doc) if fold.begins_elsewhere else fold.run()
            self._keep(origin, doc, fold.copied)
        return doc

    def _get(self, origin: Origin) -> Any:
        with self._lock:
            if origin not in self._kept:
                return _NONE
            self._kept.move_to_end(origin)
            return self._kept[origin]

    def _keep(self, origin: Origin, doc: Any, copied: int) -> None:
        if origin.hash is None:
            return
        with self._lock:
            kept = self._kept
            kept[origin] = doc
            kept.move_to_end(origin)
            self._weight += copied - self._weights.get(origin, 0)
            self._weights[origin] = copied
            while len(kept) > _KEPT or (self._weight > _POINTERS and len(kept) > 2):
                self._weight -= self._weights.pop(kept.popitem(last=False)[0])


def _later_base(lines: Lines) -> int:
    """Return the line of a later snapshot that refers to another run."""
    found = (i for i in range(len(lines)) if (record := lines.record(i)).kind == "snapshot" and "base" in record)
    return next(found, 0) + 1


def _fold_of(child: Member, origin: Origin) -> tuple[Member, Fold]:
    """Return a child's origin run, and the fold of its first state."""
    what = f"run {child.run_id} starts with state {origin.step} of run {origin.run}"
    try:
        parent = child.find(origin.run)
    except TraceNotFoundError as error:
        raise TraceNotFoundError(f"{what}: {error}", error.path) from None
    if parent.run_id != origin.run:
        raise TraceNotFoundError(f"{what}: {parent.lines.path} holds run {parent.run_id}", parent.lines.path)
    stop = None
    if origin.hash is not None:
        stop = record_end(parent.lines, origin.hash)
        if stop is None:
            raise TraceNotFoundError(
                f"{what}, as of its record {origin.hash}: {parent.lines.path or 'the trace'} holds no such "
                "record; it was cut off, or belongs to another run",
                parent.lines.path,
            )
    steps = count_commits(parent.lines, stop)
    if steps < origin.step or (stop is not None and steps > origin.step):
        raise TraceNotFoundError(f"{what}, which has only {steps} steps there", parent.lines.path)
    return parent, plan_state(parent.lines, origin.step, stop)
