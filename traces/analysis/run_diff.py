"""The difference of two runs, by step and by phase.

Two runs never have the same lines: ids, times, hashes and the order of concurrent effects always differ. So effects are
matched by their call, and members that belong to the single run (`_IDS`, `_OWN`, `_VOLATILE`) do not count.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from ..file.record import CHILD_STATE, RUN_CHILD, WAIT_CHILD, Record
from ..json_patch.apply import escape, same_json
from ..json_patch.diff import make_patch
from ..json_patch.share import Change, changes_of
from ..step import Effect, Step
from .differences import ABSENT, Difference, Twins, differences

_HEADER = ("format", "module", "state", "schema", "schema_version", "task", "budget", "seed")
_IDS = frozenset(("seed", "session_id", "agent_id"))
"""Header members that are new for each run."""
_DERIVED = re.compile(r"s([0-9]{1,15})a([0-9]+)")
"""An action id that refold made: the numbers of the step and the action."""
_TELLING = 8
"""From this length on, two texts at the same place of the headers count as equal. A shorter text may occur anywhere by
chance.
"""
_END = ("status", "stop_reason", "final_result", "task_result", "patch")
_OWN = frozenset(("run", "key", "intent"))
"""Details of a request that contain the id of the run, or of its child."""
_OF_CHILDREN = frozenset((RUN_CHILD, CHILD_STATE, WAIT_CHILD))
_VOLATILE = frozenset(("seconds", "elapsed", "elapsed_seconds", "duration", "started_at", "ended_at", "run_id"))


class HeadSide(Protocol):
    """The part of a trace that a comparison of headers needs."""

    @property
    def run_id(self) -> str: ...  # noqa: D102
    @property
    def header(self) -> Record: ...  # noqa: D102


class EndSide(Protocol):
    """The part of a trace that a comparison of ends needs."""

    @property
    def end(self) -> Mapping[str, Any]: ...  # noqa: D102


class Side(HeadSide, EndSide, Protocol):
    """The part of a trace that a comparison needs."""

    @property
    def steps(self) -> Sequence[Step]: ...  # noqa: D102
    @property
    def unfinished(self) -> Step | None: ...  # noqa: D102
    @property
    def first_state(self) -> Any: ...  # noqa: D102
    @property
    def final_state(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class PhaseDiff:
    """The differences in one of `TraceDiff`'s phases, within one step."""

    step: int
    phase: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """The first place where two traces differ, with the differences there.

    It is False if the traces are equal. `phase` is init, decide, branch, wait, act, reduce or end; it is header if only
    the headers differ. `header` always holds the differences of the headers, except `ids`: seeds, session and agent
    ids, which are new for each run. `ids` and `versions` alone do not make two traces different. After the headers, two
    texts at the same place of the headers count as equal. `states` are the differences of the states after that step; a
    run without that step has its last state compared.
    """

    step: int | None = None
    phase: str | None = None
    differences: tuple[Difference, ...] = ()
    versions: tuple[Difference, ...] = field(default=(), compare=False)
    states: tuple[Change, ...] = field(default=(), compare=False)
    header: tuple[Difference, ...] = field(default=(), compare=False)
    ids: tuple[Difference, ...] = field(default=(), compare=False)

    @property
    def path(self) -> str | None:
        """The path of the first difference; None if there is none."""
        return self.differences[0].path if self.differences else None

    @property
    def left(self) -> Any:
        """The first difference's value on the left."""
        return self.differences[0].left if self.differences else ABSENT

    @property
    def right(self) -> Any:
        """The first difference's value on the right."""
        return self.differences[0].right if self.differences else ABSENT

    def __bool__(self) -> bool:
        return bool(self.differences)

    def __str__(self) -> str:
        if not self.differences:
            return "the traces are equal"
        where = self.phase if self.phase in ("header", "end") else f"step {self.step}, {self.phase}"
        return "\n".join([f"the traces differ first at {where}:", *[f"  {each}" for each in self.differences]])


def diff_traces(left: Side, right: Side) -> TraceDiff:
    """Return where two traces first differ, and all differences there.

    Ignored are: run ids and parents, idempotency keys, times, durations, hashes, attempts, events, the order of
    concurrent effects, and different patches that lead to the same state.

    A fork and its source are compared from the fork's first state on; `step` is a number of the source.
    """
    versions = tuple(differences(left.header.get("versions"), right.header.get("versions"), "/versions"))
    header, ids, _ = header_differences(left, right)
    for found in diff_phases(left, right):
        ahead = shift_of(left, right)
        at = found.step - max(0, -ahead), found.step - max(0, ahead)
        states = _state(left, at[0], found.phase, max(0, ahead)), _state(right, at[1], found.phase, max(0, -ahead))
        changes = () if None in states or same_json(*states) else changes_of(states[0], make_patch(*states))
        return TraceDiff(found.step, found.phase, found.differences, versions, changes, header, ids)
    if header:
        return TraceDiff(0, "header", header, versions, (), header, ids)
    return TraceDiff(versions=versions, ids=ids)


def diff_phases(left: Side, right: Side) -> Iterator[PhaseDiff]:
    """Yield every phase in which two traces differ, in order.

    Headers are not compared. After the first step that led to different states, each step's changes are compared
    instead of its states, which would differ in every further step.
    """
    _, _, twins = header_differences(left, right)
    for step, phase, found in _Phases(left, right, twins).walk():
        if found:
            yield PhaseDiff(step, phase, tuple(found))


def header_differences(left: HeadSide, right: HeadSide) -> tuple[tuple[Difference, ...], tuple[Difference, ...], Twins]:
    """Return the headers' differences, those of ids, and equal texts."""
    found = list(differences(_members(left.header, _HEADER), _members(right.header, _HEADER)))
    ids = tuple(each for each in found if each.path.rpartition("/")[2] in _IDS)
    texts = [
        (each.left, each.right)
        for each in (*found, Difference("", left.run_id, right.run_id))
        if isinstance(each.left, str) and isinstance(each.right, str) and len(each.left) >= _TELLING
    ]
    texts.sort(key=lambda pair: -len(pair[0]))  # a text that contains another one is replaced first
    return tuple(each for each in found if each not in ids), ids, tuple(texts)


class _Phases:
    """The comparison of two traces, phase by phase."""

    def __init__(self, left: Side, right: Side, twins: Twins) -> None:
        self.left, self.right, self.twins = left, right, twins

    def walk(self) -> Iterator[tuple[int, str, list[Difference]]]:
        """Yield each phase of each step, with its differences.

        If one run is a fork of the other, steps have the source's numbers.
        """
        left, right = self.left, self.right
        shift = shift_of(left, right)
        behind = max(0, -shift), max(0, shift)
        count = max(len(left.steps) + behind[0], len(right.steps) + behind[1])
        steps = StepPhases(self.twins, shift=shift)
        first = [] if shift else steps.effects(_step(left, 0), _step(right, 0), "init")
        states = _state(left, 0, "init", behind[1]), _state(right, 0, "init", behind[0])
        found = [*first, *steps.differences(*states, "/state")]
        steps.parted = bool(found)
        yield abs(shift), "init", found
        for k in range(abs(shift), count + 1):
            a, b = _step(left, k - behind[0]), _step(right, k - behind[1])
            if a is None and b is None:
                break
            for phase, several in steps.of(a, b):
                yield k, phase, several
        yield count, "end", list(steps.differences(end_of(left), end_of(right), ""))


class StepPhases:
    """The comparison of one step with another, phase by phase."""

    def __init__(self, twins: Twins = (), *, parted: bool = False, shift: int = 0) -> None:
        self.twins = twins
        self.shift = shift
        """Step k of the right run is aligned with step k + shift of the left one, so derived action ids differ by the
        shift."""
        self.parted = parted
        """True if an earlier step led to different states."""

    def of(self, a: Step | None, b: Step | None) -> Iterator[tuple[str, list[Difference]]]:
        """Yield each phase of two steps, with its differences.

        None means that one of the runs does not have the step.
        """
        decided = self.differences(_proposed(a), _proposed(b), "/decision")
        yield "decide", [*self.effects(a, b, "decide"), *decided]
        yield "branch", self._branched(a, b)
        yield "wait", list(self.differences(_waits(a), _waits(b), "/waits"))
        observed = self.differences(a and a.observation, b and b.observation, "/observation")
        yield "act", [*self.effects(a, b, "act"), *observed]
        found = self._reduced(a, b)
        self.parted = self.parted or bool(found)
        yield "reduce", found

    def differences(self, left: Any, right: Any, path: str) -> Iterator[Difference]:
        """Yield the differences of two values."""
        found = differences(left, right, path, twins=self.twins)
        return (each for each in found if not self._is_shifted(each)) if self.shift else found

    def _is_shifted(self, found: Difference) -> bool:
        """Return whether two action ids differ only in their step."""
        left, right = (_DERIVED.fullmatch(str(side)) for side in (found.left, found.right))
        if left is None or right is None or found.path.rpartition("/")[2] != "id":
            return False
        return left[2] == right[2] and int(left[1]) - int(right[1]) == self.shift

    def _reduced(self, a: Step | None, b: Step | None) -> list[Difference]:
        if (a is None or not a.committed) and (b is None or not b.committed):
            return []
        if a is None or b is None or a.committed is not b.committed:
            left = a.patch if a is not None and a.committed else ABSENT
            return [Difference("/patch", left, b.patch if b is not None and b.committed else ABSENT)]
        if same_json(a.patch, b.patch):
            return []
        if not self.parted:
            return list(self.differences(a.state, b.state, "/state"))
        old, new = _changed(a), _changed(b)
        return [
            each
            for path in dict.fromkeys([*old, *new])
            for each in self.differences(old.get(path, ABSENT), new.get(path, ABSENT), f"/state{path}")
        ]

    def _branched(self, a: Step | None, b: Step | None) -> list[Difference]:
        """Compare a step's choices and final decision; runs are named by place."""
        if not (a and a.branches) and not (b and b.branches):
            return list(self.effects(a, b, "branch"))
        left, right = ([_choice(each) for each in step.branches] if step else [] for step in (a, b))
        return [
            *self.effects(a, b, "branch"),
            *self.differences(left, right, "/branches"),
            *self.differences(a and a.decision, b and b.decision, "/decision"),
        ]

    def effects(self, a: Step | None, b: Step | None, phase: str) -> Iterator[Difference]:
        """Compare the effects of a phase, matched by their call.

        The effects left over are matched by name, so that their arguments are compared.
        """
        left, right = _called(a, phase), _called(b, phase)
        for call in [call for call in left if call in right]:
            yield from self.differences(_outcome(left.pop(call)), _outcome(right.pop(call)), f"/effects/{call[-4]}")
        rest: dict[str, list[Effect]] = {}
        for effect in right.values():
            rest.setdefault(effect.name, []).append(effect)
        for effect in left.values():
            other = rest[effect.name].pop(0) if rest.get(effect.name) else None
            path = f"/effects/{escape(effect.name)}"
            if other is None:
                yield Difference(path, _outcome(effect), ABSENT)
            elif same_json(effect.args, other.args) and not self.twins:
                yield Difference(f"{path}/digest", effect.digest, other.digest)
            elif found := list(self.differences(effect.args, other.args, f"{path}/args")):
                yield from found
            else:  # the same call, once the headers' texts count as equal
                yield from self.differences(_outcome(effect), _outcome(other), path)
        for others in rest.values():
            for effect in others:
                yield Difference(f"/effects/{escape(effect.name)}", ABSENT, _outcome(effect))


def _changed(step: Step) -> dict[str, Any]:
    """Return the new value at each changed path; None if removed."""
    return {change.path: change.new for change in changes_of(step.before, step.patch)}


def shift_of(left: HeadSide, right: HeadSide) -> int:
    """Return how many of its source's steps come before a fork.

    The number is negative if `left` is the fork, and 0 if neither is one.
    """
    of_left, of_right = descent(left, lambda run: None), descent(right, lambda run: None)
    if left.run_id in of_right:
        return of_right[left.run_id]
    return -of_left.get(right.run_id, 0)


def descent(trace: HeadSide, source: Callable[[str], HeadSide | None]) -> dict[str, int]:
    """Return a run and its sources of forks, nearest first.

    Each comes with the number of its step that corresponds to the given run's first step. `source` finds a run by its
    id; the line ends if it returns None.
    """
    found, place = {trace.run_id: 0}, 0
    at: HeadSide | None = trace
    while at is not None:
        parent = at.header.get("parent") or {}
        if parent.get("kind") != "fork" or parent["run"] in found:
            break
        place += int(parent["step"])
        found[parent["run"]] = place
        at = source(parent["run"])
    return found


def _state(side: Side, k: int, phase: str, before: int = 0) -> Any:
    """Return the state after step `k`, or after the last step.

    For init, return the state before step `before`. Returns None if there is no such state.
    """
    if phase == "header" or side.first_state is None:
        return None
    if phase == "init" and before:
        return _state(side, before - 1, "reduce")
    if phase in ("init", "end"):
        return side.first_state if phase == "init" else side.final_state
    step = _step(side, k) or _step(side, len(side.steps) - 1)
    return step.state if step is not None else side.first_state


def _step(side: Side, k: int) -> Step | None:
    if 0 <= k < len(side.steps):
        return side.steps[k]
    return side.unfinished if k == len(side.steps) else None


def _members(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}


def end_of(side: EndSide) -> dict[str, Any]:
    """Return the members of a run's end that can be compared."""
    end = _members(side.end, _END)
    if "task_result" in end:
        end["task_result"] = _without(end["task_result"])
    error = side.end.get("error")
    if error:
        end["error"] = _members(error, ("type", "message"))
    return end


def _proposed(step: Step | None) -> Any:
    """Return a step's first decision; a branch includes its candidates."""
    decision = None
    for record in step.records if step is not None else ():
        if record.kind == "branch" and "chosen" in record:
            break
        if record.kind == "decide":
            decision = record["decision"]
    return decision


def _choice(branch: Mapping[str, Any]) -> dict[str, Any]:
    choice = _members(branch, ("strategy", "chosen", "scores", "lost", "cut"))
    return {**choice, "chosen": {name: value for name, value in branch["chosen"].items() if name != "run"}}


def _waits(step: Step | None) -> list[dict[str, Any]]:
    """Return a step's requests and answers, sorted by content.

    Their ids are left out, because they contain the run's id.
    """
    records = step.records if step is not None else ()
    answers: dict[str, Any] = {}
    for record in records:
        if record.kind == "input":
            answers.update(record["answers"])
    asked = [
        {name: value for name, value in request.items() if name not in ("id", "deadline")}
        | {"details": {n: value for n, value in (request.get("details") or {}).items() if n not in _OWN}}
        | ({"answer": answers[request["id"]]} if request["id"] in answers else {})
        for record in records
        if record.kind == "wait"
        for request in record["requests"]
    ]
    return sorted(asked, key=lambda request: orjson.dumps(request, option=orjson.OPT_SORT_KEYS))


def _called(step: Step | None, phase: str) -> dict[tuple[Any, ...], Effect]:
    """Return the effects of a phase by their call.

    The key of a call is its name, digest, `n` and number among equals, preceded by the keys of the calls around it.
    """
    found: dict[tuple[Any, ...], Effect] = {}

    def add(effect: Effect, above: tuple[Any, ...]) -> None:
        call = (*above, escape(effect.name), effect.digest, effect.n)
        again = 0
        while (*call, again) in found:
            again += 1
        found[(*call, again)] = effect
        for child in effect.children:
            add(child, (*call, again))

    for effect in step.effects if step is not None else ():
        if effect.phase == phase:
            add(effect, ())
    return found


def _outcome(effect: Effect) -> dict[str, Any]:
    return {
        "result": _without_run(effect.result) if effect.name in _OF_CHILDREN else effect.result,
        "error": effect.error,
        "cancelled": effect.cancelled,
        "open": effect.open,
        "usage": _without(effect.usage),
    }


def _without_run(result: Any) -> Any:
    """Return a child run's result without the members that differ between runs."""
    if not isinstance(result, Mapping):
        return result
    kept = {name: value for name, value in result.items() if name not in ("run_id", "hash")}
    return {**kept, "usage": _without(kept.get("usage"))}


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(item) for name, item in value.items() if name not in _VOLATILE}
    return [_without(item) for item in value] if isinstance(value, list) else value
