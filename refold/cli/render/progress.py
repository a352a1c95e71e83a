"""The progress of a live run, folded from its records."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...traces import Record
from ...traces.json_patch.changed import COUNTER, changed_between
from ...traces.json_patch.fold import patched
from .text import brief


@dataclass(frozen=True)
class Done:
    """A committed step: decision, errors (or None) of results, costs."""

    index: int
    decision: dict[str, Any]
    results: list[str | None]
    changed: int
    seconds: float
    tokens: int


@dataclass
class Progress:
    """The state of a live run: feed records, read attributes."""

    run_id: str = ""
    module: str = ""
    budget: dict[str, Any] = field(default_factory=dict)
    before: int = 0
    """The number of steps of other runs that led to a fork's first state."""
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    ended: bool = False
    decision: dict[str, Any] | None = None
    open_calls: dict[int, str] = field(default_factory=dict)
    last_changed: list[str] = field(default_factory=list)
    """The paths that the last step changed: those of `Step.changes`, or of the patch if the run's first state is
    unknown."""
    _document: Any = None
    _requested: set[str] = field(default_factory=set)
    _errors: dict[int, str | None] = field(default_factory=dict)
    _earlier: float = 0.0
    _began: float = 0.0
    _last: float = 0.0
    _step_began: float = 0.0
    _step_tokens: int = 0
    _forked: bool = False

    @classmethod
    def of_tail(cls, header: Record, records: Sequence[Record]) -> "Progress":
        """Return the progress of a run from its last records.

        They start at the first record, or before the last commit, which has the usage so far.
        """
        progress = cls()
        progress.take(header)
        last = max((place for place, record in enumerate(records) if record.kind == "commit"), default=None)
        if last is not None:
            commit = records[last]
            used = commit.get("usage") or {}
            progress.steps = commit.step + 1
            progress.tokens = (used.get("tokens_in") or 0) + (used.get("tokens_out") or 0)
            progress.cost, progress.unpriced = used.get("cost") or 0.0, used.get("unpriced") or 0
            progress._earlier, progress._began = commit.get("seconds") or 0.0, commit.at
            progress._last = progress._step_began = commit.at
        for record in records[0 if last is None else last + 1 :]:
            if record.kind != "header":
                progress.take(record)
        return progress

    @property
    def last_at(self) -> float:
        """The time of the last record, in seconds since the epoch."""
        return self._last

    def take(self, record: Record) -> Done | None:
        """Fold the next record; return the step that it committed, or None."""
        done = None
        if record.kind in ("header", "resume"):
            self._start(record)
            self._fold(record)
        elif record.kind == "snapshot":
            self._document = record.get("state")
            if self._forked:
                self._forked, self.before = False, record["state"]["current_step"]
        elif record.kind == "decide":
            self.decision = record["decision"]
        elif record.kind == "intent":
            self.open_calls[record.seq] = record["name"]
        elif record.kind == "outcome":
            self.open_calls.pop(record["intent"], None)
            error = record.get("error")
            self._errors[record.seq] = None if error is None else f"{error.get('type')}: {error.get('message')}"
            self._use(record.get("usage") or {})
        elif record.kind == "wait":
            self._requested.update(request["id"] for request in record["requests"])
        elif record.kind == "input":
            self._requested.difference_update(record["answers"])
            self._earlier -= record.get("waited") or 0.0
        elif record.kind == "commit":
            done = self._commit(record)
        elif record.kind == "end":
            self.ended = True
            self._fold(record)
            used = record.get("usage") or {}
            if "seconds" in used:  # the figure of the other commands and the page, without the time to write records
                self._earlier, self._began = used["seconds"], record.at
        self._last = record.at
        return done

    def seconds(self, now: float) -> float:
        """Return the seconds of work until `now`, earlier attempts included.

        `now` is in seconds since the epoch.
        """
        return self._earlier + max(0.0, (self._last if self.ended else now) - self._began)

    def doing(self) -> str:
        """Return the run's current work in a few words."""
        if self._requested:
            return f"waiting for {'an answer' if len(self._requested) == 1 else f'{len(self._requested)} answers'}"
        if self.open_calls:
            names = list(self.open_calls.values())
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            return brief(names[-1], 30) + more
        return "deciding" if self.decision is None else ""

    def _start(self, record: Record) -> None:
        if record.kind == "header":
            self.run_id, self.module = record["run_id"], record["module"]
            self.steps = self.before = self.tokens = self.unpriced = self._step_tokens = 0
            self.last_changed, self._document = [], None
            self.cost = self._earlier = 0.0
            self._forked = (record.get("parent") or {}).get("kind") == "fork"
        else:
            self._earlier += self._last - self._began
        self.budget = record["budget"]
        self._began = self._step_began = record.at
        self.ended = False
        self.open_calls.clear()

    def _use(self, usage: dict[str, Any]) -> None:
        tokens = usage.get("tokens_in", 0) + usage.get("tokens_out", 0)
        self.tokens += tokens
        self._step_tokens += tokens
        self.cost += usage.get("cost") or 0.0
        self.unpriced += tokens > 0 and usage.get("cost") is None

    def _commit(self, record: Record) -> Done:
        results = (record.get("observation") or {}).get("results") or []
        errors = [self._errors.get(r) if isinstance(r, int) else r.get("error") for r in results]
        self.last_changed = self._fold(record)
        took = max(0.0, record.at - self._step_began)
        done = Done(record.step, self.decision or {}, errors, len(self.last_changed), took, self._step_tokens)
        self.steps, self.decision = record.step + 1, None
        self._errors.clear()
        self._requested.clear()
        self._step_began, self._step_tokens = record.at, 0
        return done

    def _fold(self, record: Record) -> list[str]:
        """Apply a record's patch; return the changed paths."""
        patch = record.get("patch") or []
        if self._document is None:
            return list(dict.fromkeys(op["path"] for op in patch if op["path"] != f"/{COUNTER}"))
        before, self._document = self._document, patched(self._document, patch)
        return [change.path for change in changed_between(before, self._document)]
