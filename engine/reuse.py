"""Counterfactual replay: a fork takes what another run recorded, for as long as it asks for the same."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from ..traces import Effect, Step, Trace, TraceError, TraceNotFoundError, branches_folder, split_pointer
from .calls import Recorded
from .journal import ASK, Journal, Key
from .result import WaitRequest, live_from
from .state import StateModel, StateSchema, dump

Tell = Callable[[int, str, str, bytes, str], None]
"""Writes where the run goes on live: step, phase, what was asked for, its arguments as JSON, and why."""
_LAST = 1 << 60
_NOT_ASKED = "it was not asked for there"
_NOTHING = object()


def _untold(step: int, phase: str, name: str, args: bytes, why: str) -> None:
    """Tells nobody."""


def link_to(source: Trace | None, run_id: str, step: int, home: Path | None) -> dict[str, Any]:
    """State `step` of a run, as the header of a trace at `home` names it: with its file, where it is not near."""
    link: dict[str, Any] = {"run": run_id, "step": step}
    if source is not None and source.path is not None:
        folder = branches_folder(source.path.resolve()).parent
        if home is None or branches_folder(home.resolve()).parent != folder:
            link["file"] = str(source.path.resolve())
    return link


def linked(link: Mapping[str, Any], near: Trace) -> Trace:
    """The trace that a header links to: looked for among the relatives of `near`, then where it was.

    Raises TraceNotFoundError where it is neither here nor there.
    """
    try:
        return near.relative(link["run"])
    except TraceNotFoundError:
        if "file" in link and (found := Trace.load(Path(link["file"]))).run_id == link["run"]:
            return found
        raise


@dataclass
class Settled:
    """What a person told of a run's unfinished step when it was forked: answers by request, outcomes by intent."""

    answers: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def write(self, kind: str, members: Mapping[str, Any]) -> None:
        """Takes what `Answers` would write in a trace that is resumed."""
        if kind == "input":
            self.answers |= members["answers"]
        else:
            self.outcomes[members["intent"]] = members


class Reuse:
    """The recorded outcomes and answers of `source` from step `at` on.

    The first request that is not as recorded ends it: `tell` is called once, and from there the run is live. Arguments
    that refer to the state are the same where the state is the same in that place. A call that was waiting for an
    answer is entered again, and takes what is recorded inside it.
    """

    def __init__(
        self,
        source: Trace | None,
        run_id: str,
        at: int,
        tell: Tell,
        settled: Settled | None = None,
        missing: str = "",
    ) -> None:
        """Takes from `source`; None where its trace cannot be had, as `missing` says: then every request is new."""
        self.run_id = run_id
        self.at = at
        self.source = source
        self._tell = tell
        self._settled = settled or Settled()
        self._missing = missing
        self._step = -1
        self._recorded = _RecordedStep(None, Settled(), lambda value: value)
        self._lock = threading.RLock()
        self.live_from: dict[str, Any] | None = None
        """Where it ended: `step`, `phase`, `name`, `why`."""

    @classmethod
    def of(cls, trace: Trace, tell: Tell = _untold) -> "Reuse | None":
        """What a run takes from another as its header says it, up to where its trace has come."""
        link = (trace.header["parent"] or {}).get("reuse_effects")
        if link is None:
            return None
        try:
            reuse = cls(linked(link, trace), link["run"], link["step"], tell)
        except TraceError as error:
            reuse = cls(None, link["run"], link["step"], tell, missing=str(error))
        reuse.live_from = live_from(trace)
        return reuse

    def link(self, home: Path | None) -> dict[str, Any]:
        """What the header of a trace at `home` says of it."""
        return link_to(self.source, self.run_id, self.at, home)

    @property
    def live(self) -> bool:
        """Whether it has ended."""
        return self.live_from is not None

    def take(self, step: int, phase: str, digest: str, n: int, name: str, args: bytes, state: Any) -> Recorded | None:
        """The recorded outcome of this request; None where it is to be made."""
        with self._lock:
            if self.live:
                return None
            try:
                self._enter(step)
                recorded = self._recorded
                found = recorded.journal.take(phase, digest, n) or recorded.settled.get((phase, digest, n))
                if found is None and (phase, digest, n) not in recorded.entered:
                    self.end(
                        step, phase, name, args, self._missing or recorded.unknown.get((phase, digest, n), _NOT_ASKED)
                    )
                    return None
                changed = self._changed(args, state) if b'"$state"' in args else None
            except TraceError as error:
                self.end(step, phase, name, args, str(error))
                return None
            if changed is not None:
                self.end(step, phase, name, args, f"{changed or 'the state'} was another one there")
                return None
            return found

    def answer(self, step: int, request: WaitRequest) -> tuple[Any] | None:
        """The recorded answer to a wait decision that asked the same."""
        with self._lock:
            if self.live:
                return None
            args = orjson.dumps({"prompt": request.prompt})
            try:
                self._enter(step)
            except TraceError as error:
                self.end(step, "wait", "wait", args, str(error))
                return None
            for asked, answer in self._recorded.waits:
                if (asked["prompt"], asked["schema"]) == (request.prompt, request.schema):
                    return (answer,)
            self.end(step, "wait", "wait", args, self._missing or "nobody had answered it there")
            return None

    def child(self, run_id: str, tell: Tell) -> "Reuse":
        """What a child run takes: the recorded outcomes of the child that explored the same place there."""
        if self.source is None:
            return Reuse(None, run_id, 0, tell, missing=self._missing)
        try:
            return Reuse(self.source.relative(run_id), run_id, 0, tell)
        except TraceError as error:
            return Reuse(None, run_id, 0, tell, missing=f"this candidate was not explored there: {error}")

    @property
    def journal(self) -> Journal:
        """What the source has of the step under way."""
        return self._recorded.journal

    def end(self, step: int, phase: str, name: str, args: bytes, why: str) -> None:
        """From here on the run is live; said once."""
        with self._lock:
            if self.live_from is None:
                self.live_from = {"step": step, "phase": phase, "name": name, "why": why}
                self._tell(step, phase, name, args, why)

    def _enter(self, step: int) -> None:
        if step == self._step:
            return
        self._step = step
        source = self.source
        if source is None:
            return
        count, index = source.step_count, self.at + step
        recorded = source.steps[index] if index < count else source.unfinished if index == count else None
        settled = self._settled if index == count else Settled()
        self._recorded = _RecordedStep(recorded, settled, source.value)

    def _changed(self, args: bytes, state: StateSchema | None) -> str | None:
        """The first part of the state that the arguments refer to and that is not as it was."""
        assert self.source is not None
        was = self.source.shared_state(self.at + self._step)
        for path in _pointers(orjson.loads(args)):
            here, there = _part(state, path), _part(was, path)
            if here is _NOTHING or there is _NOTHING or dump(here) != orjson.dumps(there):
                return path
        return None


class _RecordedStep:
    """What a trace has of one step, for whoever asks for the same."""

    def __init__(self, step: Step | None, settled: Settled, value: Callable[[Any], Any]) -> None:
        effects = step.effects if step is not None else ()
        self.journal = Journal(effects, value=value)
        self.settled: dict[Key, Recorded] = {}
        """Calls without an outcome of which it is known what came of them."""
        self.entered = set[Key]()
        """Calls that were waiting for an answer."""
        self.unknown: dict[Key, str] = {}
        """Why calls that were begun have nothing to take."""
        self.waits: list[tuple[Mapping[str, Any], Any]] = []
        """Wait decisions and their answers."""
        answers = {**_answers(step), **{name: (None, answer) for name, answer in settled.answers.items()}}
        for effect in _walk(effects):
            if effect.open or effect.cancelled:
                self._unfinished(effect, answers, settled)
        for record in step.records if step is not None else ():
            for request in record["requests"] if record.kind == "wait" else ():
                if request["kind"] == "wait" and "run" not in request["details"] and request["id"] in answers:
                    self.waits.append((request, answers[request["id"]][1]))

    def _unfinished(self, effect: Effect, answers: Mapping[str, tuple[int | None, Any]], settled: Settled) -> None:
        key = effect.phase, effect.digest, effect.n
        told = settled.outcomes.get(effect.seq)
        if told is not None:
            self.settled[key] = Recorded(effect.seq, None, told.get("result"), told.get("error"), _LAST)
        elif effect.name == ASK and effect.key[:16] in answers:
            seq, answer = answers[effect.key[:16]]
            self.settled[key] = Recorded(effect.seq, seq, answer, None, _LAST)
        elif effect.name == ASK:
            self.unknown[key] = "nobody had answered it there"
        elif any(each.name == ASK and (each.open or each.cancelled) for each in effect.walk()):
            self.entered.add(key)
        else:
            self.unknown[key] = "it had not ended there"


def _walk(effects: tuple[Effect, ...]) -> Iterator[Effect]:
    for effect in effects:
        yield from effect.walk()


def _answers(step: Step | None) -> dict[str, tuple[int | None, Any]]:
    """What was answered in a step, by request, each with the number of its record."""
    found: dict[str, tuple[int | None, Any]] = {}
    for record in step.records if step is not None else ():
        if record.kind == "input":
            found |= {name: (record.seq, answer) for name, answer in record["answers"].items()}
    return found


def _pointers(args: Any) -> Iterator[str]:
    if isinstance(args, dict):
        if list(args) == ["$state"]:
            yield args["$state"]
            return
        args = list(args.values())
    if isinstance(args, list):
        for each in args:
            yield from _pointers(each)


def _part(node: Any, pointer: str) -> Any:
    """What stands at a pointer, in a state or in its document."""
    for token in split_pointer(pointer):
        if isinstance(node, StateModel):
            node = node.__dict__
        if isinstance(node, dict):
            node = node.get(token, _NOTHING) if token in node else _named(node, token)
        elif isinstance(node, list) and token.isdecimal() and int(token) < len(node):
            node = node[int(token)]
        else:
            return _NOTHING
    return node


def _named(members: Mapping[Any, Any], token: str) -> Any:
    """The member whose key is not text but has this text in JSON."""
    return next((value for key, value in members.items() if str(getattr(key, "value", key)) == token), _NOTHING)
