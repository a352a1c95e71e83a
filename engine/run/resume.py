"""Resumes a run from its trace: finished calls are kept, unknown effects are asked about, the rest is done.

`prepare_resume` works on the trace alone, before any hook runs:

    1. reopen the trace: take its lock, cut off a torn last line
    2. if the run has ended (and no larger budget was given): return its result
    3. verify: fold the recorded steps with the present code; raise DivergenceError if a step differs (unless ignored)
    4. take the given answer, and look for unknown effects; ask `on_wait` about these
    5. if unknown effects remain, or the run waits and there is nothing new: return a "waiting" result
    6. otherwise write the `resume` record

A preparation that fails before it has anything to write leaves the trace as it was, except for the torn line. `_say`
writes the `resume` record, once, before any other record of the new attempt.

`Resumption.enter` then puts a new LiveRun and Runner where the trace ends: step number, usage, requests, and, for an
unfinished step, the recorded decision, the chosen candidate and the journal of its calls. The step's hooks run again
from their beginning, with recorded outcomes, until they make a request that has none.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from ...errors import DivergenceError, EngineUsageError, TraceCorruptError, TraceNotFoundError, WaitAnsweredError
from ...printable import message_of
from ...tasks import Task, TaskResult
from ...traces import Record, Trace
from ...traces.analysis.children import begun_children
from ...traces.file.writer import TraceWriter
from ...traces.json_patch.make import make_patch
from ..effects.budget import RuntimeBudget
from ..effects.journal import CHILD, STARTED, Journal
from ..effects.redaction import Redactor
from ..effects.state_refs import Learn
from ..effects.usage import RunUsage, Usage, is_unpriced
from ..endings import RunStatus, StopReason
from ..loop.decision import Decision
from ..module import AgentModule
from ..replay.divergence import Divergence
from ..replay.reuse import Reuse
from ..replay.unknown_effects import Answers
from ..replay.verify import find_divergences
from ..result import UNANSWERED, RunFailure, RunResult, WaitRequest
from ..state.model import StateSchema
from .clock import Clock
from .finish import unfinished
from .fork import forked_state
from .header import versions
from .live_run import STATES, LiveRun
from .runner import BEAT_SECONDS, Runner
from .waits import OnWait, called, left_open


@dataclass
class Resumption:
    """A run ready to be resumed, or its result if there is nothing to do (`done`).

    The writer holds the trace's lock. `again` holds the intents of unknown effects that a person has decided to run
    again.
    """

    writer: TraceWriter
    trace: Trace
    done: RunResult | None = None
    task: Task = field(default_factory=lambda: Task(objective="-"))
    budget: RuntimeBudget = field(default_factory=RuntimeBudget)
    state: StateSchema | None = None
    again: frozenset[int] = frozenset()
    written: list[Record] = field(default_factory=list)
    """The records that the preparation wrote, for the observers."""
    requests: list[WaitRequest] = field(default_factory=list)
    """The requests of the unfinished step."""
    answers: dict[str, Any] = field(default_factory=dict)
    """The answers to these requests, by id."""
    on_divergence: Literal["fail", "ignore"] = "fail"
    """What to do if the code no longer does what was recorded."""
    secrets: list[tuple[str, str]] = field(default_factory=list)
    """The secrets of earlier attempts that verifying has revealed, as names and values."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.trace.run_id

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.trace.header["seed"])

    def enter(self, run: LiveRun, runner: Runner) -> None:
        """Set the run and its runner to the end of the trace."""
        trace = self.trace
        for name, secret in self.secrets:
            run.learn_secret(name, secret)
        run.step = len(trace.steps)
        used = used_so_far(trace)
        run.earlier_seconds = used.seconds
        account = run.account
        account.restore(used)
        events = [r for r in trace.records if r.kind == "event" and r["name"] == "budget_warning"]
        account.warned.update(str(r["data"].get("what")) for r in events)
        runner.held.state = self.state
        runner.on_divergence = run.on_divergence = self.on_divergence
        runner.snapshot_bytes, runner.patch_bytes = _weights(trace)
        run.state_hash = next((r.hash for r in reversed(trace.records) if r.kind in STATES), None)
        run.waits.restore(self.requests, self.answers)
        link = trace.header["parent"] or {}
        run.path = link.get("path", "")
        run.reuse = Reuse.of(trace, run.tell_live)
        if trace.first_state is None and self.state is not None:
            runner.begin(self.state)
        runner.has_besides = bool(started_in(trace))
        step = trace.unfinished
        if step is not None:
            run.begun_children = set(children_of_calls(step.records))
            run.journal = Journal(step.effects, step.events, again=self.again, value=trace.value)
            if step.decision is not None:
                runner.recorded_decision = Decision.from_dict(step.decision)
            runner.again = True
            decided = [r for r in step.records if r.kind in ("decide", "branch") and "opened" not in r]
            runner.nest = len(step.branches)
            if decided and decided[-1].kind == "branch":  # the choice was recorded, the chosen decision was not
                runner.recorded_choice = decided[-1]["chosen"]
                runner.nest -= 1


async def prepare_resume(
    module: AgentModule[Any],
    source: Trace | Path,
    budget: RuntimeBudget | None,
    durability: Literal["process", "power", "none"],
    value: Any,
    request: str | None,
    on_divergence: Literal["fail", "fork", "ignore"],
    clock: Clock,
    redactor: Redactor | None,
    on_wait: OnWait | None = None,
    child: bool = False,
) -> Resumption:
    """Lock and verify a trace, take the answer if one is given, and write the `resume` record.

    `on_wait` is asked about unknown effects. `child` says that the run is resumed by its parent. `Engine.aresume` lists
    the errors; after an error, the trace is as before, except that a torn last line is cut off.
    """
    if on_divergence not in ("fail", "fork", "ignore"):
        raise EngineUsageError(f"on_divergence must be 'fail', 'fork' or 'ignore', got {on_divergence!r}")
    writer, trace = TraceWriter.reopen(source, durability=durability)
    try:
        link = trace.header["parent"] or {}
        if not child and ("call" in link or link.get("candidate") is not None):
            what, whose = ("a child run", "began it") if "call" in link else ("an explored candidate", "branched")
            raise EngineUsageError(
                f"run {trace.run_id} is {what}, which goes on with the run that {whose}: resume {link['run']}, or "
                "fork this one"
            )
        preparation = _Preparation(module, writer, trace, budget, clock, redactor, on_wait)
        return await preparation.prepare(value, request, on_divergence)
    except BaseException:
        writer.close()
        raise


class _Preparation:
    """One attempt to resume a run: the steps that the head of this file lists."""

    def __init__(
        self,
        module: AgentModule[Any],
        writer: TraceWriter,
        trace: Trace,
        budget: RuntimeBudget | None,
        clock: Clock,
        redactor: Redactor | None,
        on_wait: OnWait | None,
    ) -> None:
        self.on_wait = on_wait
        self.module = module
        self.writer = writer
        self.trace = trace
        self.task = Task.from_dict(trace.header["task"])
        self.budget = budget or RuntimeBudget.from_dict(trace.budget)
        self.raised = budget is not None  # a run that was stopped may go on with another budget
        self.clock = clock
        self.redactor = redactor
        self.steps = len(trace.steps)
        self.said = False  # whether the `resume` record is written
        self.waited = 0.0  # seconds in `on_wait`, until a record reports them
        self.secrets: list[tuple[str, str]] = []
        self.written: list[Record] = []

    async def prepare(self, value: Any, request: str | None, on_divergence: str) -> Resumption:
        trace = self.trace
        status = trace.status
        if status == RunStatus.completed or (status == RunStatus.stopped and not self.raised):
            if value is not UNANSWERED:
                raise WaitAnsweredError(f"run {trace.run_id} has ended ({trace.stop_reason}); it waits for no answer")
            return Resumption(self.writer, trace, done=result_of(trace, self.module))
        if on_divergence != "ignore" and (divergences := await _divergences(trace, self.module, self._learn)):
            raise DivergenceError(divergences)
        now = self.clock.time()
        answers, again, fates = self._answers(value, request)
        if fates:
            self._show(fates)
            if self.on_wait is not None and (told := await self._told(self.on_wait, answers, fates)):
                answers, again, fates = self._answers(told, None)
        waiting = [r for r in answers.requests if r.id not in answers.answers]
        if fates:
            self._show(fates)
            return self._wait([*fates, *waiting])
        # a run that was killed while it waited is resumed: other work of its step may be left
        suspended = status == RunStatus.waiting and trace.ending.record is not None
        late = any(r.deadline is not None and r.deadline <= now for r in waiting)
        if suspended and waiting and not (self.said or late or self.on_wait is not None):
            return self._wait(waiting)
        state = self._say()
        return Resumption(
            self.writer,
            self.writer.trace(),
            None,
            self.task,
            self.budget,
            state,
            again,
            self.written,
            answers.requests,
            answers.answers,
            "ignore" if on_divergence == "ignore" else "fail",
            self.secrets,
        )

    def _answers(self, value: Any, request: str | None) -> tuple[Answers, frozenset[int], list[WaitRequest]]:
        """Take the given answers; return them, the intents to run again, and requests about unknown effects left."""
        trace = self.writer.trace() if self.written else self.trace
        answers = Answers(trace, self._write_after_saying, self.redactor, self.module, self.clock.time())
        return answers, *answers.take(value, request)

    def _show(self, fates: list[WaitRequest]) -> None:
        """Write these requests, if the trace does not have them yet."""
        shown = {each["id"] for each in (self.writer.trace() if self.written else self.trace).waiting}
        if not {each.id for each in fates} <= shown:
            self._say()
            self._write("wait", {"requests": [each.to_dict() for each in fates]})

    async def _told(self, on_wait: OnWait, answers: Answers, fates: list[WaitRequest]) -> dict[str, Any]:
        """Ask the handler about each unknown effect in turn; return its valid answers by request."""
        told: dict[str, Any] = {}
        began = self.clock.monotonic()
        for request in fates:
            try:
                answer = await called(on_wait, request)
                if answer is not UNANSWERED:
                    answers.check(request, answer)
                    told[request.id] = answer
            except WaitAnsweredError as error:
                self._left_open(request, "answer_refused", str(error))
            except Exception as error:  # noqa: BLE001 - a stranger's handler must not end the run; it is reported
                self._left_open(request, "on_wait_failed", f"{type(error).__name__}: {message_of(error)}")
        self.waited = round(self.clock.monotonic() - began, 6)
        return told

    def _left_open(self, request: WaitRequest, event: str, problem: str) -> None:
        data = left_open(request, event, problem, self.redactor)
        self._write_after_saying("event", {"name": event, "data": data})

    def _learn(self, name: str, secret: str) -> None:
        """Add a secret of an earlier attempt, before anything is written."""
        self.secrets.append((name, secret))
        self.redactor = Redactor({}) if self.redactor is None else self.redactor.copy()
        self.redactor.add(name, secret)

    def _wait(self, requests: list[WaitRequest]) -> Resumption:
        waits = result_of(self.writer.trace(), self.module, requests)
        return Resumption(self.writer, self.trace, done=waits, written=self.written)

    def _write(self, kind: str, members: dict[str, Any]) -> None:
        self.written.append(self.writer.append(kind, self.steps, round(self.clock.time(), 3), members))

    def _write_after_saying(self, kind: str, members: dict[str, Any]) -> None:
        self._say()
        if kind == "input" and self.waited:  # no work was done while the handler was asked
            members = {**members, "waited": self.waited}
            self.waited = 0.0
        self._write(kind, members)

    def _say(self) -> StateSchema | None:
        """Write the `resume` record, once; return the state from which the run continues."""
        trace, cls = self.trace, self.module.state_class
        begun = trace.first_state is not None
        state = cls.from_dict(trace.state(self.steps)) if begun else forked_state(trace, cls)
        if state is not None and state.max_steps != self.budget.max_steps:
            limit = max(self.budget.max_steps, state.current_step)
            state = cls.from_dict({**state.to_dict(), "max_steps": max(limit, 1)})
        members: dict[str, Any] = {
            "attempt": 2 + sum(1 for r in trace.records if r.kind == "resume"),
            "versions": versions(),
            "budget": self.budget.to_dict(),
            "schema_version": cls.model_fields["schema_version"].default,
        }
        if self.writer.torn:
            members["torn"] = len(self.writer.torn)
        if begun and state is not None and (patch := make_patch(trace.final_state, state.to_dict())):
            members["patch"] = patch
        if not self.said:
            self.said = True
            self._write("resume", members)
        return state


def _weights(trace: Trace) -> tuple[int, int]:
    """Return the bytes of the last snapshot, and of the commits after it."""
    commits = 0
    for record in reversed(trace.records):
        if record.kind == "commit":
            commits += len(record.raw)
        elif record.kind == "snapshot":
            return len(record.raw), commits
    return 0, commits


async def _divergences(trace: Trace, module: AgentModule[Any], learn: Learn) -> list[Divergence]:
    """Return the run's divergences; if it has none, those of the candidates' runs that will be resumed with it."""
    found = await find_divergences(module, trace, learn)
    step = trace.unfinished
    for record in step.records if step is not None and not found else ():
        if record.kind == "branch" and "opened" in record:
            for child in _relatives(trace, record["opened"]["children"]):
                if _goes_on(child, trace):
                    below = await _divergences(child, module, learn)
                    found += [replace(each, run=each.run or child.run_id) for each in below]
    return found


def _goes_on(child: Trace, parent: Trace) -> bool:
    """Return whether a child run is resumed with its parent."""
    status = child.status
    if status == RunStatus.stopped:
        return child.stop_reason in (StopReason.budget_time, StopReason.budget_tokens, StopReason.budget_cost)
    return status == parent.status if status == RunStatus.failed else status != RunStatus.completed


def _seconds(trace: Trace) -> float:
    """Return the seconds of work in all attempts so far, without the time between them and in waits.

    Nobody knows when a killed attempt ended. A run at work writes something every `BEAT_SECONDS`, so the attempt counts
    until that long after its last record, but at most until it was resumed.
    """
    total, began, last = 0.0, trace.header.at, trace.header.at
    exploring: list[str] = []
    beside = started_in(trace)
    cut_off = True
    for record in trace.records:
        if record.kind == "resume":
            worked = max(last, _worked_until(trace, exploring + beside, record.at))
            if cut_off:  # the attempt may have worked for up to one beat after its last record
                worked = max(worked, min(worked + BEAT_SECONDS, record.at))
            total += worked - began
            began = record.at
        elif (names := _begun_by(record)) is not None:
            exploring += names
        elif record.kind == "branch":
            total -= record.get("waited", 0.0)
            exploring = []
        elif record.kind in ("input", "outcome"):
            total -= record.get("waited", 0.0)
        elif record.kind == "commit":
            exploring = []
        elif record.kind == "end":
            total, began = record["usage"]["seconds"], record.at
        if record.kind not in ("event", "snapshot"):
            cut_off = record.kind not in ("end", "wait")
        last = record.at
    if trace.ending.record is None:
        last = max(last, _worked_until(trace, exploring + beside, float("inf")))
    return max(0.0, total + last - began)


def _worked_until(trace: Trace, names: list[str], before: float) -> float:
    """Return the time of the last record of these child runs and their children, up to the time `before`.

    Later records belong to the next attempt, which resumed the children.
    """
    last = 0.0
    for child in _relatives(trace, names):
        for record in child.records:
            if record.at <= before:
                last = max(last, record.at)
                if (below := _begun_by(record)) is not None:
                    last = max(last, _worked_until(child, below, before))
    return last


def _begun_by(record: Record) -> list[str] | None:
    """Return the child runs that a record starts, by a branch or by a call; None if it starts none."""
    if record.kind == "branch" and "opened" in record:
        return list(record["opened"]["children"])
    return list(children_of_calls([record])) or None


def used_so_far(trace: Trace) -> RunUsage:
    """Return the usage of a run: from its end record, otherwise the last commit's plus outcomes and children since."""
    end = trace.ending.record
    if end is not None:
        used = end.get("usage") or {}
        return RunUsage(**{name: used[name] for name in RunUsage.__slots__ if used.get(name) is not None})
    since: list[Usage] = []
    opened: dict[str, None] = {}
    booked: Mapping[str, Any] = {}
    told: Mapping[str, Any] = {}
    opened |= dict.fromkeys(children_of_calls(_since_commit(trace)))
    for record in reversed(trace.records):
        if record.kind == "commit":
            booked, told = record.get("usage") or {}, record.get("background") or {}
            break
        if record.kind == "outcome":
            used = record.get("usage") or record.get("estimated")
            since += [Usage.from_dict(used)] if used else []
        if record.kind == "branch" and "opened" in record:
            opened |= dict.fromkeys(record["opened"]["children"])
    children = [used_so_far(child) for child in _relatives(trace, opened)]
    children += [_less(used_so_far(child), told.get(child.run_id)) for child in _relatives(trace, started_in(trace))]
    told_of: list[Usage] = [u for u in since if not u.estimated]
    counted: list[Usage | RunUsage] = [*told_of, *children]
    costs = [u.cost or 0.0 for u in since] + [c.cost for c in children]
    return RunUsage(
        steps=len(trace.steps),
        seconds=round(_seconds(trace), 6),
        tokens_in=booked.get("tokens_in", 0) + sum(u.tokens_in for u in counted),
        tokens_out=booked.get("tokens_out", 0) + sum(u.tokens_out for u in counted),
        cost=booked.get("cost", 0.0) + sum(costs),
        calls=booked.get("calls", 0) + len(told_of) + sum(c.calls for c in children),
        unpriced=booked.get("unpriced", 0) + sum(map(is_unpriced, since)) + sum(c.unpriced for c in children),
        estimated=booked.get("estimated", 0)
        + sum(u.tokens for u in since if u.estimated)
        + sum(c.estimated for c in children),
    )


def _since_commit(trace: Trace) -> list[Record]:
    """Return the records since the last commit, last first."""
    return list(takewhile(lambda record: record.kind != "commit", reversed(trace.records)))


def started_in(trace: Trace) -> list[str]:
    """Return the ids of a run's background children, in the order of their start."""
    return list(dict.fromkeys(record["child"] for record in begun_children(trace, STARTED)))


def children_of_calls(records: Iterable[Record]) -> Iterator[str]:
    """Yield the ids of the child runs that `run_child` calls among these records have started."""
    for record in records:
        if record.kind == "intent" and record["name"] == CHILD and "child" in record:
            yield record["child"]


def _less(used: RunUsage, told: Mapping[str, Any] | None) -> RunUsage:
    """Return `used` minus the usage that a commit has booked already."""
    if told is None:
        return used
    cost = max(0.0, used.cost - (told.get("cost") or 0.0))
    names = ("tokens_in", "tokens_out", "calls", "unpriced", "estimated")
    less = {name: max(0, getattr(used, name) - told.get(name, 0)) for name in names}
    return RunUsage(cost=cost, **less)


def _relatives(trace: Trace, names: Iterable[str]) -> Iterator[Trace]:
    """Yield the traces of the child runs with these ids, without those that have no records."""
    for name in names:
        with suppress(TraceNotFoundError):
            child = trace.relative(name)
            if len(child.records):
                yield child


def _told(trace: Trace, task_result: dict[str, Any] | None) -> TaskResult:
    """Return the task result of an end record; raises TraceCorruptError if it is not valid."""
    if not task_result:
        return unfinished(str((trace.header.get("task") or {}).get("id")))
    try:
        return TaskResult(**task_result)
    except ValueError as error:
        reason = f"the end record's task_result is none: {error}"
        raise TraceCorruptError(reason, trace.end["seq"] + 1, path=trace.path) from None


def result_of(trace: Trace, module: AgentModule[Any], waiting: list[WaitRequest] | None = None) -> RunResult:
    """Return the result of a run from its trace; `waiting` holds open requests, which make it a waiting run."""
    end = trace.end
    has_state = trace.first_state is not None
    state = module.state_class.from_dict(trace.final_state) if has_state else None
    status = RunStatus.waiting if waiting else RunStatus(end["status"])
    reason = StopReason.waiting if waiting else StopReason(end["stop_reason"])
    final = None if waiting else end.get("final_result")
    error = RunFailure.from_dict(end["error"]) if not waiting and end.get("error") else None
    task_result = end.get("task_result") if not waiting else None
    return RunResult(
        status=status,
        stop_reason=reason,
        final_result=final,
        state=state,
        steps=len(trace.steps),
        usage=used_so_far(trace),
        task_result=_told(trace, task_result),
        trace=trace,
        error=error,
        waiting=waiting or [],
    )
