"""Checks the order, references and snapshots of a trace's records."""

from collections.abc import Callable
from typing import Any

import orjson

from ...errors import PatchError, TraceCorruptError, TraceError
from ..json_patch.apply import PlaceFold, collector_at_rest
from ..json_patch.share import patched
from ..step import gather_effects
from .lines import Lines
from .record import KINDS, PATCHING, Record


def check_structure(lines: Lines, base: Callable[[], Any]) -> None:
    """Check the lines, and what their hash chain cannot show.

    - The header is the first record. Commits are numbered without gaps.
    - An outcome refers to an earlier intent without an outcome. (A cancelled outcome may be followed by a second one: a
      person has reported since what became of the call.)
    - A reference in an observation is an earlier outcome. A chosen run was opened in the same step.
    - Each snapshot equals the state folded from the records before it.

    `base` returns the state of another run, if the trace starts at one. Raises `TraceCorruptError` with the first bad
    line; if no line is bad, the error that `base` raised.
    """
    walk, index = _Walk(base), -1
    try:
        with collector_at_rest():
            for index, (raw, doc) in enumerate(lines.checked()):
                walk.see(Record.of(raw, doc, lines.path), index)
    except _Wrong as wrong:
        raise TraceCorruptError(
            wrong.reason, index + 1, path=lines.path, expected=wrong.expected, actual=wrong.actual
        ) from None
    except PatchError as error:
        raise TraceCorruptError(f"the patch does not fit the state: {error}", index + 1, path=lines.path) from None
    walk.calls()
    if walk.missing is not None:
        raise walk.missing


class _Wrong(Exception):
    def __init__(self, reason: str, expected: Any = None, actual: Any = None) -> None:
        self.reason = reason
        self.expected = expected
        self.actual = actual


_UNKNOWN = object()
"""Placeholder for an unknown state: the run that holds it is missing or corrupt."""


class _Walk:
    """The facts of the records so far, to check the next record."""

    def __init__(self, base: Callable[[], Any]) -> None:
        self.base = base
        self.missing: TraceError | None = None
        self.parent: Any = None
        self.commits = 0
        self.intents: set[int] = set()
        self.step: list[Record] = []
        self.nested = False
        """Whether a call of the step is inside another one."""
        self.fold = PlaceFold()
        self.closed: set[int] = set()
        self.cancelled: set[int] = set()
        self.outcomes: set[int] = set()
        self.opened: set[str] = set()
        self.doc: Any = None
        self.has_state = False
        self.shares = False

    def see(self, record: Record, index: int) -> None:
        """Check the next record and note its facts."""
        doc, kind = record.data, record.kind
        if kind not in KINDS:
            raise _Wrong("there is no such kind of record", actual=kind)
        if (kind == "header") is not (index == 0):
            raise _Wrong("only the first record is a header", actual=kind)
        if kind == "header":
            self.parent = doc.get("parent") or {}
        if kind in ("decide", "commit") and not self.has_state:
            raise _Wrong(f"a {kind} comes before the first state")
        if kind == "intent":
            self.intents.add(record.seq)
            self.step.append(record)
            self.nested = self.nested or doc.get("parent") is not None
        elif kind == "outcome":
            self._outcome(record, doc)
        elif kind == "branch":
            self._branch(record)
        elif kind == "snapshot":
            self._snapshot(record)
        elif kind == "commit":
            self._commit(record, doc)
        elif kind == "end" and record.step != self.commits:
            raise _Wrong("the end does not count the committed steps", expected=self.commits, actual=record.step)
        if kind in PATCHING and (patch := doc.get("patch")):
            if not self.has_state:
                raise _Wrong("a patch comes before the first state")
            if self.shares:
                self.doc = patched(self.doc, patch)
            elif self.doc is not _UNKNOWN:
                self.doc = self.fold(self.doc, patch)  # in place: each record is parsed for this walk alone

    def _outcome(self, record: Record, doc: dict[str, Any]) -> None:
        intent, cancelled = doc["intent"], doc.get("cancelled")
        if intent not in self.intents:
            raise _Wrong("the outcome refers to no earlier intent", actual=intent)
        if intent in self.closed or (intent in self.cancelled and cancelled):
            raise _Wrong("the intent has an outcome already", actual=intent)
        (self.cancelled if cancelled else self.closed).add(intent)
        self.outcomes.add(record.seq)

    def _branch(self, record: Record) -> None:
        if "opened" in record:
            self.opened.update(record["opened"]["children"])
            return
        chosen = record["chosen"]
        if "candidate" not in chosen and chosen.get("run") not in self.opened:
            raise _Wrong("the branch that was chosen was not opened in this step", actual=chosen.get("run"))

    def _snapshot(self, record: Record) -> None:
        if record.step != self.commits:
            raise _Wrong("the snapshot is of another step than the state", expected=self.commits, actual=record.step)
        if not self.has_state:
            self.doc, self.has_state = (
                record["state"] if "state" in record else self._begin(record),
                True,
            )
        elif self.doc is _UNKNOWN:
            self.doc = record["state"]
        elif "state" not in record:
            raise _Wrong("only the first snapshot may refer to a state of another run")
        elif orjson.dumps(record["state"]) != orjson.dumps(self.doc):
            raise _Wrong("the snapshot differs from the state folded from the patches")

    def _begin(self, record: Record) -> Any:
        """Return the other run's state that this run starts from, or `_UNKNOWN`."""
        for member in ("run", "step"):
            if record["base"][member] != self.parent.get(member):
                raise _Wrong(
                    f"the state at which the run starts is of another {member} than its parent",
                    expected=self.parent.get(member),
                    actual=record["base"][member],
                )
        try:
            doc = self.base()
        except TraceError as error:
            self.missing = error
            return _UNKNOWN
        self.shares = True
        return doc

    def _commit(self, record: Record, doc: dict[str, Any]) -> None:
        if record.step != self.commits:
            raise _Wrong("the commits are not numbered in order", expected=self.commits, actual=record.step)
        for result in (doc.get("observation") or {}).get("results", ()):
            if isinstance(result, int) and result not in self.outcomes:
                raise _Wrong("the observation refers to no earlier outcome", actual=result)
        self.commits += 1
        self.opened.clear()
        self.calls()

    def calls(self) -> None:
        """Check how the calls of the step nest; raises `TraceCorruptError`."""
        if self.nested:
            gather_effects(self.step)
        self.step.clear()
        self.nested = False
