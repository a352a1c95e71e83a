"""Reuse: a fork takes its source's outcomes for equal requests.

This answers "what would have happened if ...": only what follows from the edit costs calls. For each request of a step,
`RecordedStep` looks up the same step of the source:

    the source has the call with an outcome         take the outcome, and write it in the fork as reused
    it has no outcome, in its unfinished step       make the call live; other calls of the step are reused all the same
    a background child was started in it that had   the same, so that the fork has such a child of its own
    not ended there
    neither                                         make the call live, and end reuse: all later requests are live too

The fork writes a `live_from` event at the first live call and at the end of reuse (`Tell`). Child runs and candidates
reuse the outcomes of the child at the same place in the source (`Reuse.child`).
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ...errors import TraceError, TraceNotFoundError
from ...traces import Record, Trace
from ...traces.analysis.locate import branches_folder
from ...traces.file.trace_bytes import SUFFIX
from ...traces.stores import RunRef
from ..effects.arguments_json import part_at, pointers
from ..effects.call import Recorded
from ..effects.journal.journal import Entry, Request
from ..effects.journal.redacted_match import fits
from ..result import WaitRequest, told_live
from ..state.digest import value_digest
from .child_ends import has_ended
from .recorded_step import NOT_ANSWERED, NOT_ENDED, RecordedStep, Settled

Tell = Callable[[int, str, str, bytes, str, bool], None]
"""Writes that a request is live: step, phase, effect name, arguments as JSON, why, and whether this ends reuse."""
_NOT_ASKED = "the source run made no such request"


def _untold(step: int, phase: str, name: str, args: bytes, why: str, ends: bool) -> None:
    """Write nothing."""


def link_to(source: Trace | None, run_id: str, step: int, home: "Path | RunRef | None") -> dict[str, Any]:
    """Return a header's link to state `step` of a run.

    The link names the run's file only if a reader of `home` would not find it: the run is outside the family's folder
    and not in the same store.
    """
    link: dict[str, Any] = {"run": run_id, "step": step}
    if isinstance(home, RunRef):
        home = home.store.path_of(home.run_id)
    if source is not None and source.path is not None:
        folder = branches_folder(source.path.resolve()).parent
        if home is None or branches_folder(home.resolve()).parent != folder:
            link["file"] = str(source.path.resolve())
    return link


def linked(link: Mapping[str, Any], near: Trace) -> Trace:
    """Load the trace to which a header's link leads.

    refold looks for it among the relatives of `near`, then at the file in the link. Raises TraceNotFoundError if
    neither has it.
    """
    run = link["run"]
    try:
        return near.relative(run)
    except TraceNotFoundError:
        place = Path(link.get("file", ""))
        if place.name == run + SUFFIX and (found := Trace.load(place)).run_id == run:
            return found
        raise


class Reuse:
    """The recorded outcomes and answers of `source` from step `at` on.

    The first request without a record ends reuse: from there on the run is live, and `tell` is called. A call of the
    source's unfinished step that has no outcome runs live too, but does not end reuse, because the other calls of that
    step ran beside it. A call that was waiting for an answer is entered again, and reuses the outcomes inside it.
    """

    def __init__(
        self,
        source: Trace | None,
        run_id: str,
        at: int,
        settled: Settled | None = None,
        missing: str = "",
    ) -> None:
        """Reuse outcomes of `source`.

        If the source's trace is not available (None), `missing` says why, and nothing is reused. `settled` holds the
        answers and decisions given for the source's unfinished step.
        """
        self.run_id = run_id
        self.at = at
        self.source = source
        self._tell: Tell = _untold
        self._settled = settled or Settled()
        self._missing = missing
        self._step = -1
        self._recorded = RecordedStep("", None, Settled(), lambda value: value, lambda run_id: False)
        self._lock = threading.RLock()
        self.live_from: dict[str, Any] | None = None
        """The first live request: `step`, `phase`, `name`, `why`."""
        self.live = False
        """Whether reuse has ended."""

    @classmethod
    def of(cls, trace: Trace) -> "Reuse | None":
        """Return the reuse of a recorded fork after its last record.

        Returns None if its header asks for no reuse.
        """
        link = (trace.header["parent"] or {}).get("reuse_effects")
        if link is None:
            return None
        try:
            reuse = cls(linked(link, trace), link["run"], link["step"])
        except TraceError as error:
            reuse = cls(None, link["run"], link["step"], missing=str(error))
        reuse._go_on(list(told_live(trace)))
        return reuse

    def _go_on(self, told: list[Record]) -> None:
        """Continue the reuse of a fork after its `live_from` events `told`."""
        self.live_from, self.live = told[0]["data"] if told else None, any(event["reused"] for event in told)

    def tell_by(self, tell: Tell) -> None:
        """Report live requests to `tell` from here on."""
        self._tell = tell

    def link(self, home: "Path | RunRef | None") -> dict[str, Any]:
        """Return the header's link to the source; see `link_to`."""
        return link_to(self.source, self.run_id, self.at, home)

    def take(self, step: int, request: Request, learn: Callable[[str, str], None]) -> tuple[Entry, Recorded] | None:
        """Return the recorded call and outcome for a request, or None."""
        with self._lock:
            if self.live:
                return None
            try:
                found, why, ends = self._found(step, request, learn)
            except TraceError as error:
                found, why, ends = None, str(error), True
            if why:
                args = request.asked.data or orjson.dumps(request.asked.form)
                self._say(step, request.phase, request.asked.name, args, why, ends)
            return found

    def answer(self, step: int, request: WaitRequest) -> tuple[Any] | None:
        """Return the recorded answer to an equal wait decision, in a tuple.

        Returns None if the source has no such wait decision, or no answer.
        """
        with self._lock:
            if self.live:
                return None
            try:
                found, why, ends = self._answered(step, request)
            except TraceError as error:
                found, why, ends = None, str(error), True
            if why:
                self._say(step, "wait", "wait", orjson.dumps({"prompt": request.prompt}), why, ends)
            return found

    def answers(self, step: int, *, onwards: bool = False) -> dict[str, Any]:
        """Return the source's answers in a step, and its children's, by request.

        With `onwards`, those of all later steps are returned, too.
        """
        found: dict[str, Any] = {}
        with self._lock, suppress(TraceError):
            if onwards and self.source is not None:
                for record in self.source.records:
                    if record.kind == "input" and record.step >= self.at + step:
                        found |= record["answers"]
                return found | self._settled.answers
            self._enter(step)
            found = {name: answer for name, (_, answer) in self._recorded.answers.items()}
        return found

    def child(self, run_id: str, answers: dict[str, Any]) -> "Reuse":
        """Return a child's reuse of the source's child at the same place.

        `run_id` is the source's child, and `answers` are those that the source recorded on behalf of its child.
        """
        if self.source is None:
            return Reuse(None, run_id, 0, missing=self._missing)
        try:
            return Reuse(self.source.relative(run_id), run_id, 0, Settled(answers))
        except TraceError as error:
            return Reuse(None, run_id, 0, missing=f"this candidate was not explored in the source run: {error}")

    def end(self, step: int, phase: str, name: str, args: bytes, why: str) -> None:
        """End reuse at this request, and report it once."""
        with self._lock:
            if not self.live:
                self._say(step, phase, name, args, why, True)

    def _say(self, step: int, phase: str, name: str, args: bytes, why: str, ends: bool) -> None:
        if ends or self.live_from is None:
            self._tell(step, phase, name, args, why, ends)
        self.live = self.live or ends
        self.live_from = self.live_from or {"step": step, "phase": phase, "name": name, "why": why}

    def _found(
        self, step: int, request: Request, learn: Callable[[str, str], None]
    ) -> tuple[tuple[Entry, Recorded] | None, str, bool]:
        """Return the recorded call and outcome of a request.

        Also returns why the call is live, if it is, and whether that ends reuse.
        """
        self._enter(step)
        recorded = self._recorded
        entry = recorded.journal.find(request, learn)
        if entry is None:
            return None, self._missing or self._other_state(request) or _NOT_ASKED, True
        if entry.effect.seq in recorded.again:
            return None, "", False
        entry.recorded = recorded.settled.get(entry.effect.seq, entry.recorded)
        found = recorded.journal.outcome(entry)
        if found is not None:
            return (entry, found), "", False
        return None, recorded.open[entry.effect.seq] or (NOT_ENDED if recorded.committed else ""), recorded.committed

    def _other_state(self, request: Request) -> str:
        """Return the part of the state by which a request differs.

        Returns `""` if the request differs from each recorded request by more.
        """
        if self.source is None or b'"$state"' not in request.asked.data:
            return ""
        args = orjson.loads(request.asked.data)
        was = self.source.shared_state(self.at + self._step)
        for effect in self._recorded.journal.alike(request):
            if self.source.value(effect.args) == args:
                for path in pointers(args):
                    if value_digest([part_at(request.state, path)]) != value_digest([part_at(was, path)]):
                        return f"{path or 'the state'} is different in the source run"
        return ""

    def _answered(self, step: int, request: WaitRequest) -> tuple[tuple[Any] | None, str, bool]:
        self._enter(step)
        for asked, answer in self._recorded.waits:
            if fits([asked["prompt"], asked["schema"]], [request.prompt, request.schema]):
                return answer, "" if answer is not None else NOT_ANSWERED, self._recorded.committed
        return None, self._missing or _NOT_ASKED, True

    def _enter(self, step: int) -> None:
        source = self.source
        if step == self._step or source is None:
            return
        count, index = source.step_count, self.at + step
        recorded = source.steps[index] if index < count else source.unfinished if index == count else None
        settled = self._settled if index == count else Settled()
        self._recorded = RecordedStep(self.run_id, recorded, settled, source.value, self._goes_on_live)
        self._step = step

    def _goes_on_live(self, run_id: str) -> bool:
        """Return whether the source's background child had not ended."""
        assert self.source is not None
        try:
            return not has_ended(self.source.relative(run_id))
        except TraceNotFoundError:
            return True
