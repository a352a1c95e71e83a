"""One step of a run, put together from its records: what was decided, what was done, what came of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .errors import TraceCorruptError
from .file.record import BEAT, Record
from .json_patch.share import Change, changes_of
from .states.history import History


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect: an intent, and its outcome unless it is `open` (nobody knows whether it happened).

    `args` are those of the decision's action where the effect is one (`action` is its id). A large result is a
    reference to a blob here (`Trace.value` gives what it stands for). `seconds` is how long it took.
    """

    seq: int
    phase: str
    name: str
    args: Any
    action: str | None
    digest: str
    n: int | str
    key: str
    parent: int | None
    idempotent: bool
    result: Any
    error: dict[str, Any] | None
    seconds: float | None
    usage: dict[str, Any] | None
    cancelled: bool
    open: bool
    outcome: int | None
    children: tuple["Effect", ...]

    def walk(self) -> Iterator["Effect"]:
        """Give this effect and all that ran inside it."""
        yield self
        for child in self.children:
            yield from child.walk()


class Step:
    """One step: step k leads from state k to state k + 1. Its parts are made when they are looked at.

    Documents (`before`, `state`) share what did not change with each other: look at them, don't change them.
    `committed` is False for the step that was under way when the trace ended.
    """

    def __init__(
        self,
        index: int,
        records: Sequence[Record],
        commit: Record | None,
        history: History,
        lookup: Callable[[str, int, Record], Record],
        value: Callable[[Any], Any],
    ) -> None:
        self.index = index
        self.records = records
        """The step's records in the file's order, its commit last."""
        self._commit = commit
        self._history = history
        self._lookup = lookup
        self._value = value

    @property
    def committed(self) -> bool:
        """Whether the step was committed."""
        return self._commit is not None

    @cached_property
    def decision(self) -> dict[str, Any] | None:
        """The decision that was carried out; None in a step that ended before it was made."""
        return next((record["decision"] for record in reversed(self.records) if record.kind == "decide"), None)

    @cached_property
    def decided(self) -> dict[str, Any] | None:
        """The decision that `decide` gave; None where it gave none, as in the first step of a run branched off."""
        first = next((record for record in self.records if record.kind == "decide"), None)
        return None if first is None or "candidate" in first else first["decision"]

    @cached_property
    def branches(self) -> tuple[Mapping[str, Any], ...]:
        """What the branches of the step came to, in order: `strategy`, `chosen`, `scores`, `lost`, `cut`."""
        return tuple(record for record in self.records if record.kind == "branch" and "chosen" in record)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """The effects in the order they were begun; those inside others are their `children`."""
        return gather_effects(self.records)

    @cached_property
    def observation(self) -> dict[str, Any] | None:
        """What the decision brought: `results` in the actions' order, outcomes looked up and blobs loaded."""
        if self._commit is None:
            return None
        recorded = self._commit.get("observation") or {}
        return {**recorded, "results": [self._result(self._commit, each) for each in recorded.get("results", ())]}

    @property
    def errors(self) -> list[tuple[str, str] | None]:
        """The type and the message of each result of the observation that is an error; no blob is loaded for it."""
        found: list[tuple[str, str] | None] = []
        if self._commit is None:
            return found
        for each in (self._commit.get("observation") or {}).get("results", ()):
            if isinstance(each, int):
                outcome = self._outcome(self._commit, each)[1]
                error = outcome.get("error")
                found.append(_told_error(outcome.get("result")) if error is None else (error["type"], error["message"]))
            else:
                message = each.get("error")
                told = _told_error(each.get("output"))
                found.append(told if message is None else (str(each.get("error_type")), message))
        return found

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The RFC 6902 patch from `before` to `state`; empty in a step that was not committed."""
        return (self._commit.get("patch") or []) if self._commit is not None else []

    @property
    def before(self) -> Any:
        """The document that the step began with."""
        return self._history.before(self.index) if self.committed else self._history.at(len(self._history.patching))

    @property
    def state(self) -> Any:
        """The document that the step led to."""
        return self._history.after(self.index) if self.committed else self.before

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What the patch changed, with old and new values and real list indices."""
        return changes_of(self.before, self.patch)

    @property
    def usage(self) -> dict[str, Any] | None:
        """What the run had used when the step was committed, as the commit says it."""
        return self._commit.get("usage") if self._commit is not None else None

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of the step: `name`, `data`, and the `intent` they came from, if any; beats are none."""
        return [
            {"name": record["name"], "data": record.get("data"), "intent": record.get("intent"), "at": record.at}
            for record in self.records
            if record.kind == "event" and record["name"] != BEAT
        ]

    def __repr__(self) -> str:
        return f"<Step {self.index}: {(self.decision or {}).get('mode')}, {len(self.patch)} changes>"

    def _outcome(self, commit: Record, seq: int) -> tuple[Record, Record]:
        outcome = self._lookup("outcome", seq, commit)
        return self._lookup("intent", outcome["intent"], outcome), outcome

    def _result(self, commit: Record, result: int | Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(result, int):
            return {"id": None, "name": None, "output": None, "error": None, "error_type": None} | {
                name: self._value(item) for name, item in result.items()
            }
        intent, outcome = self._outcome(commit, result)
        error = outcome.get("error")
        return {
            "id": intent.get("action"),
            "name": intent["name"],
            "output": self._value(outcome.get("result")),
            "error": None if error is None else error.get("message"),
            "error_type": None if error is None else error.get("type"),
        }


def _told_error(output: Any) -> tuple[str, str] | None:
    """The type and the message of an error that a tool of an Agent gave back for the model to read."""
    told = output.get("metadata") if isinstance(output, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("error_type"), str):
        return None
    return told["error_type"], str(told.get("error"))


NESTED = 100
"""How many calls may be open inside each other: what shows and compares them is recursive, as their code was."""


def gather_effects(records: Sequence[Record]) -> tuple[Effect, ...]:
    """Put intents and outcomes together, the children of an effect inside it.

    A call that was entered again (its run was suspended in it, or a crash left it open) is one effect: the attempt that
    ended, else the last; what any attempt had done is inside it. Raises `TraceCorruptError` where an intent is inside a
    later one, or more than `NESTED` deep.
    """
    actions = {
        action["id"]: action.get("args")
        for record in records
        if record.kind == "decide"
        for action in record["decision"].get("actions") or ()
        if "id" in action
    }
    outcomes = {record["intent"]: record for record in records if record.kind == "outcome"}
    intents = [record for record in records if record.kind == "intent"]
    attempts: dict[Any, list[Record]] = {}
    for intent in intents:
        attempts.setdefault(call_of(intent), []).append(intent)
    calls: dict[Any, Any] = {intent.seq: call_of(intent) for intent in intents}
    depths: dict[Any, int] = {None: 0}
    below: dict[Any, list[Any]] = {}
    for call, tries in attempts.items():
        above = calls.get(tries[0].get("parent"))
        depths[call] = depth = depths.get(above, NESTED) + 1
        if depth > NESTED:
            raise TraceCorruptError(
                f"the intent is inside a later one, or inside more than {NESTED} others",
                tries[0].seq + 1,
                path=tries[0].path,
            )
        below.setdefault(above, []).append(call)

    def ended(intent: Record) -> bool:
        return intent.seq in outcomes and not outcomes[intent.seq].get("cancelled")

    made: dict[Any, Effect] = {}
    for call, tries in reversed(attempts.items()):  # what is inside a call was begun after it
        intent = next((each for each in tries if ended(each)), tries[-1])
        outcome, action = outcomes.get(intent.seq), intent.get("action")
        done: Mapping[str, Any] = outcome.data if outcome is not None else {}
        made[call] = Effect(
            seq=intent.seq,
            phase=intent["phase"],
            name=intent["name"],
            args=intent["args"] if "args" in intent else actions.get(action),
            action=action,
            digest=intent.get("digest", ""),
            n=intent.get("n", 0),
            key=intent.get("key", ""),
            parent=intent.get("parent"),
            idempotent=bool(intent.get("idempotent", False)),
            result=done.get("result"),
            error=done.get("error"),
            seconds=done.get("seconds"),
            usage=done.get("usage"),
            cancelled=bool(done.get("cancelled", False)),
            open=outcome is None,
            outcome=None if outcome is None else outcome.seq,
            children=tuple(made[child] for child in below.get(call, ())),
        )
    return tuple(made[call] for call in below.get(None, ()))


def call_of(intent: Record) -> Any:
    """What an intent is an attempt at; one without a digest is a call of its own."""
    digest = intent.get("digest")
    return (intent["phase"], digest, intent.get("n", 0)) if digest else intent.seq
