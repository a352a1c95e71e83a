"""The runner: drives the loop of one live run until it ends, for whatever reason.

The loop (`fold`) is a generator that yields what it wants: Check, Decide, Act, Wait, Choose, Commit. `_work` sends back
what it has done for each. `work` puts a task and a time limit around it:

    work()            in the caller's task: waits for the work, and is cancelled if the caller cancels the run
      task group      cancelled by the engine: at the time limit, for a budget, on divergence, to suspend
        whole()       a task for `_work` and the hooks

Why a task of its own: a hook may swallow a cancellation, or cancel its own task. A cancel scope cancels again until the
task ends, and a cancellation in the inner task that no scope requested came from a hook, so that it is the hook's
error and does not cancel the run.

Often several reasons apply at once, since cancelled work raises errors of its own. `_failed` takes the first of:
Ctrl-C, divergence, suspended, budget used up, time used up, and only then the error (a lost trace before others).
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from time import perf_counter
from types import CoroutineType
from typing import Any, Literal, cast

import anyio
import orjson
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled

from ...errors import DecisionError, StateValueError, TraceWriteError
from ...tasks import Environment, Task
from ...traces.file.record import BEAT
from ..concurrency.cancellation import cancel_requests, is_cancelled, own_task, stray, withdraw
from ..concurrency.tasks import current_loop, later, several, soon
from ..concurrency.threads import in_thread
from ..effects.call import leave
from ..effects.context import Frame
from ..effects.json_values import own_observation
from ..effects.lanes import named_lanes
from ..effects.tools import act
from ..endings import RunStatus, StopReason, status_of
from ..first_state import first_state
from ..loop.decision import Decision, Observation
from ..loop.loop import Act, Adopted, Check, Choose, Commit, Decide, Wait, fold
from ..loop.stop_criteria import FinalResultCriteria, StopCriteria
from ..module import AgentModule
from ..purity import NOWHERE, reset_frame, set_frame
from ..result import RunFailure, WaitRequest
from ..state.held import Held
from ..state.model import StateSchema, dump
from .finish import Outcome
from .live_run import LiveRun

_ALWAYS = FinalResultCriteria()
Choice = Callable[[StateSchema, Decision, int, bool], Awaitable[int | Adopted]]
"""Resolves a branch: returns the chosen candidate's number, or the state adopted from a candidate's run.

Arguments: the state, the decision, how many branches the step has resolved before, and whether an earlier attempt has
started the step.
"""
_BREATH_SECONDS = 0.005
"""How long steps may run without a turn for the event loop."""
BEAT_SECONDS = 5.0
"""After how long without a record a run at work writes a beat: a killed run's time is known to within one beat."""
_TIMER_SECONDS = 0.002
"""How many seconds too early a timer may fire, by the resolution of the event loop's clock."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of a child run: a number of steps, and whether it ends at its next branch decision."""

    steps: int | None = None
    to_next_branch: bool = False


SNAPSHOT_AFTER = 2
"""How many times the patches since a snapshot outweigh it when the next one follows.

At 2, reading any state costs some three parses of it, and snapshots are a fifth of an Agent's trace; at 1, a third.
"""


class Runner:
    """Drives one run of a module: `work` is awaited once; `finish.finish` then writes the end."""

    def __init__(
        self,
        module: AgentModule[Any],
        task: Task,
        run: LiveRun,
        stop: Sequence[StopCriteria],
        clock_deadline: float | None,
    ) -> None:
        self.module = module
        self.task = task
        self.run = run
        self.stop = tuple(stop)
        self.seconds = clock_deadline
        self.held = Held()
        self.environment: Environment | None = None
        self.recorded_decision: Decision | None = None
        self.recorded_choice: Mapping[str, Any] | None = None
        self.again = False
        """Whether an earlier attempt started the current step."""
        self.choose: Choice | None = None
        self.adopt: Callable[[Mapping[str, Any]], Awaitable[Adopted]] | None = None
        self.limit = Limit()
        self.candidate: tuple[Decision, int] | None = None
        """The first decision of a candidate's run, and its number among the parent's candidates."""
        self.candidates: tuple[Decision, ...] = ()
        """The candidates of the branch decision at which the run stopped (see `Limit.to_next_branch`)."""
        self.has_besides = False
        """Whether an earlier attempt has started background children."""
        self.take_up: Callable[[LiveRun, AgentModule[Any]], Any] | None = None
        """Resumes the background children of earlier attempts."""
        self.nest = 0
        """How many branches the current step has resolved."""
        self.snapshot_bytes = 0
        """The size of the last snapshot, in bytes."""
        self.patch_bytes = 0
        """The size of the commits after it, in bytes."""
        self.asks_at_once = 16
        """How many candidates `decide` is asked for at a time."""
        self.on_divergence: Literal["fail", "ignore"] = "fail"
        """What to do if the code no longer does what a child's trace recorded."""
        self.lost: TraceWriteError | None = None
        """Why a beat could not be written."""
        self.working: asyncio.Task[Any] | None = None
        """The task of the work, on asyncio."""
        self.is_cut = False
        """Whether the engine has cancelled the work, through `LiveRun.cancel_work`."""
        self._sync = {name: not inspect.iscoroutinefunction(getattr(module, name)) for name in ("decide", "act")}
        self._own_act = type(module).act is not AgentModule.act
        self._only_state = module._hook_names["decide"] == ("state",)
        """Whether `decide` takes the state alone, as most do."""

    # from start to end

    async def work(self) -> Outcome:
        """Run to an end within the budget's time, and return how the run ended; only engine bugs raise.

        The head of this file says why the work has a task of its own.
        """
        run = self.run
        forget_deadline: Callable[[], Any] = _nothing
        stop_beating: Callable[[], Any] = _nothing
        run.context, run.loop = copy_context(), current_loop()  # before any hook could set a variable
        ended: list[Outcome] = []
        raised: list[BaseException] = []
        before, from_outside = cancel_requests(), None
        leave_lanes = named_lanes()

        async def whole() -> None:
            self.working = own_task()
            try:
                ended.append(await run.work)
            except BaseException as error:  # noqa: BLE001 - reported in the task that waits for this one
                raised.append(error)

        try:
            async with anyio.create_task_group() as group:
                schedule = soon()

                def cut() -> None:
                    self.is_cut = True
                    group.cancel_scope.cancel()

                def suspend() -> None:
                    run.suspended = True
                    group.cancel_scope.cancel()

                run.cancel_work = lambda: schedule(cut)
                run.waits.in_loop = schedule
                run.waits.suspend = suspend
                if self.seconds is not None:
                    forget_deadline = self._watch_time(self.seconds)
                stop_beating = self._beat(group.cancel_scope.cancel)
                run.work = self._work()
                group.start_soon(whole)
            if not ended:
                await checkpoint_if_cancelled()
            if cancel_requests() > before:
                raise asyncio.CancelledError  # the caller's cancellation, which anyio has taken for its own
        except (KeyboardInterrupt, anyio.get_cancelled_exc_class()) as error:
            from_outside = error
        finally:
            forget_deadline()
            stop_beating()
            for cancel in run.background:
                cancel()
            if run.besides is not None:
                await run.besides.stop()
            leave_lanes()
        if ended:
            return replace(ended[0], raised=from_outside)
        return self._failed(raised[0]) if from_outside is None else self._cancelled(from_outside)

    def _watch_time(self, seconds: float) -> Callable[[], Any]:
        """End the work once its time is used up; return a function that removes the limit. Blocked time is free."""
        run = self.run
        forget: Callable[[], Any] = _nothing

        def watch() -> None:
            nonlocal forget
            forget()
            forget = _nothing if run.waits.is_blocked else later(max(0.0, seconds - run.elapsed), expire)

        def expire() -> None:
            if run.waits.is_blocked or seconds - run.elapsed > _TIMER_SECONDS:
                watch()
            else:
                run.end_work()

        run.waits.unblocked = watch
        watch()
        return lambda: forget()

    def _beat(self, end: Callable[[], Any]) -> Callable[[], Any]:
        """Write a beat whenever a run at work has written nothing for `BEAT_SECONDS`; return a function to stop.

        If a beat cannot be written, the run has lost its trace: call `end`.
        """
        run, seen = self.run, self.run.writer.position
        forget: Callable[[], Any] = _nothing

        def beat() -> None:
            nonlocal forget, seen
            if not run.waits.is_blocked and not run.suspended and run.writer.position == seen:
                try:
                    run.write("event", run.step, {"name": BEAT, "data": {}})
                except TraceWriteError as error:
                    self.lost = error
                    end()
                    return
            seen = run.writer.position
            forget = later(BEAT_SECONDS, beat)

        forget = later(BEAT_SECONDS, beat)
        return lambda: forget()

    def _cancelled(self, raised: BaseException) -> Outcome:
        """Return the outcome of a run that was cancelled from outside; `raised` is raised again after the end."""
        run = self.run
        if run.stopping is not None:  # the parent's budget is used up, and the parent has cancelled this run
            reason = StopReason(run.stopping.reason)
            return Outcome(reason, status_of(reason), None, raised)
        return Outcome(StopReason.cancelled, RunStatus.cancelled, RunFailure.of(raised, run.step, run.phase), raised)

    def _failed(self, raised: BaseException) -> Outcome:
        """Return the outcome of a run whose work has raised; the engine's reasons come before the raised error."""
        run = self.run
        if isinstance(raised, KeyboardInterrupt):
            return self._cancelled(raised)
        if run.diverged is not None:
            return Outcome(
                StopReason.unrecoverable_error, RunStatus.failed, RunFailure.of(run.diverged, run.step, run.phase)
            )
        if self.lost is not None:
            raised = self.lost
        if run.suspended:
            return Outcome(StopReason.waiting, RunStatus.waiting)
        if run.stopping is not None:
            reason = StopReason(run.stopping.reason)
            return Outcome(reason, status_of(reason))
        if self.is_cut:
            return Outcome(StopReason.budget_time, RunStatus.stopped)
        if isinstance(raised, anyio.get_cancelled_exc_class()):
            raised = stray(run.phase, raised)
        error = RunFailure.of(raised, run.step, run.phase)
        fatal = not isinstance(raised, Exception) and not isinstance(raised, SystemExit)
        if isinstance(raised, BaseExceptionGroup) and fatal:
            return Outcome(StopReason.cancelled, RunStatus.cancelled, error, raised)
        return Outcome(StopReason.unrecoverable_error, RunStatus.failed, error, raised if fatal else None)

    async def _work(self) -> Outcome:
        run = self.run
        await checkpoint_if_cancelled()
        if self.held.state is None:
            await self._init()
        run.first_step = self.held.state.current_step - run.step
        run.hold(self.held)
        if self.has_besides:
            assert self.take_up is not None
            run.besides = self.take_up(run, self.module)
        machine = fold(self.module, self.held)
        reply: Any = None
        yielded = perf_counter()
        while True:
            try:
                want = machine.send(reply)
            except StopIteration as end:
                if run.besides is not None:
                    await run.besides.settle()
                return Outcome(end.value, status_of(end.value))
            reply = None
            if isinstance(want, Check):
                reply = self._check(want.state)
            elif isinstance(want, Decide):
                reply = await self._decide(want.state)
                if self._is_cancelled():
                    await checkpoint_if_cancelled()  # a hook may have swallowed the cancellation
                run.phase = "reduce"
            elif isinstance(want, Act):
                if self._own_act:
                    reply = await self._act(want)
                else:
                    run.phase = "act"
                    reply = await act(Frame(run, run.step, "act"), self.module.tools, want.decision)
                if self._is_cancelled():
                    await checkpoint_if_cancelled()
                run.phase = "reduce"
            elif isinstance(want, Wait):
                reply = await self._wait(want.decision)
                run.phase = "reduce"
            elif isinstance(want, Choose):
                decision = await self._expanded(want)
                if self.limit.to_next_branch:
                    assert not isinstance(decision.candidates, int)
                    self.candidates = decision.candidates
                    if run.besides is not None:
                        await run.besides.settle()
                    return Outcome(StopReason.max_steps, status_of(StopReason.max_steps))
                reply = await self._choose(want.state, decision)
            else:
                self._commit(want)
                if perf_counter() - yielded > _BREATH_SECONDS:
                    await checkpoint()  # otherwise hooks that never await would hold up signals, deadlines, other runs
                    yielded = perf_counter()

    def _is_cancelled(self) -> bool:
        """Return whether the work may have been cancelled; always true on trio, which counts no cancellations."""
        task = self.working
        return task is None or task.cancelling() > 0 or self.is_cut or self.run.suspended or self.lost is not None

    # the phases

    async def _init(self) -> None:
        run, module, task = self.run, self.module, self.task
        run.phase = "init"
        frame = Frame(run, run.step, "init")
        token = set_frame(frame)
        try:
            state = await first_state(module, task, run.account.budget)
            await withdraw()
        finally:
            reset_frame(token)
            frame.over = True
            if frame.open:
                leave(frame)
        run.all_asked_for("init")
        self.begin(state)

    def begin(self, state: StateSchema, data: bytes | None = None) -> None:
        """Set and write the first state of this run; `data` is its JSON without secrets, if known."""
        redactor = self.run.redactor if data is None else None
        data = dump(state) if data is None else data
        if redactor is not None and (cleaned := redactor.json(data)) is not data:
            state, data = type(state).from_dict(orjson.loads(cleaned)), cleaned
        self.held.state = state
        self._snapshot(data)

    def _check(self, state: StateSchema) -> StopReason | None:
        """Return why the run ends at this state: a final result first, then limits, then the stop criteria."""
        run = self.run
        if state.stop_reason is not None or state.final_result is not None:
            return _ALWAYS.should_stop(state, run)
        if self.limit.steps is not None and run.step >= self.limit.steps:
            return StopReason.max_steps
        if run.stopping is not None:
            return StopReason(run.stopping.reason)
        reason = run.account.used_up() if run.is_limited else None
        if reason is None and state.current_step >= state.max_steps:
            reason = StopReason.budget_steps
        if reason is None and self.seconds is not None and run.elapsed >= self.seconds:
            reason = StopReason.budget_time
        if reason is not None:
            return reason
        run.phase = "stop"
        if not self.stop:
            return None
        token = set_frame(NOWHERE)
        try:
            for criterion in self.stop:
                met = criterion.should_stop(state, run)
                if met is not None:
                    return StopReason.of(met)
            return None
        finally:
            reset_frame(token)

    async def _decide(self, state: StateSchema) -> Decision:
        run = self.run
        run.phase = "decide"
        if self.recorded_decision is not None:
            decision, self.recorded_decision = self.recorded_decision, None
            return decision
        if self.candidate is not None:
            decision, number = self.candidate
            self.candidate = None
            return self._write_decision(decision, candidate=number)
        kwargs = {"state": state} if self._only_state else self._decide_arguments(state, None)
        value = await self._call("decide", self.module.decide, kwargs)
        if run.journal is not None or run.diverged is not None:
            run.all_asked_for("decide")
        return self._write_decision(value if type(value) is Decision else as_decision(self.module, value, None))

    async def _asked(self, state: StateSchema, candidate: int) -> Decision:
        """Call `decide` for one of several candidates, and return its decision."""
        prefix = f"candidate {self.nest}.{candidate}|".encode()
        value = await self._call("decide", self.module.decide, self._decide_arguments(state, candidate), prefix)
        return as_decision(self.module, value, candidate)

    def _decide_arguments(self, state: StateSchema, candidate: int | None) -> dict[str, Any]:
        offered = {"state": state, "candidate": candidate}
        return {name: offered[name] for name in self.module._hook_names["decide"]}

    def _write_decision(self, decision: Decision, **members: Any) -> Decision:
        """Write a decision; return it as written, with ids and without secrets."""
        run = self.run
        form: Any
        decision, form = decision.written(run.step)
        if run.redactor is not None and not run.redactor.is_idle:
            data = orjson.dumps(form)
            cleaned = run.redactor.json(data)
            if cleaned is not data:
                decision = Decision.from_dict(orjson.loads(cleaned))
            form = orjson.Fragment(cleaned)
        run.write("decide", run.step, {"decision": form, **members})
        return decision

    async def _expanded(self, want: Choose) -> Decision:
        """Return the branch decision with its candidates; if it has only a count, ask `decide` for each of them."""
        self.run.phase = "decide"
        count = want.decision.candidates
        if not isinstance(count, int):
            return want.decision
        found: dict[int, Decision] = {}

        async def ask(number: int) -> None:
            found[number] = await self._asked(want.state, number)

        await several([partial(ask, number) for number in range(count)], self.asks_at_once)
        candidates = tuple(found[number] for number in range(count))
        return self._write_decision(replace(want.decision, candidates=candidates), asked=count)

    async def _act(self, want: Act) -> Observation:
        """Ask the module's own `act` for the observation of a step."""
        run = self.run
        run.phase = "act"
        offered = {"state": want.state, "decision": want.decision}
        kwargs = {name: offered[name] for name in self.module._hook_names["act"]}
        value = await self._call("act", self.module.act, kwargs)
        run.all_asked_for("act")
        try:
            return own_observation(value, run.redactor)
        except StateValueError as error:
            raise StateValueError(
                f"{type(self.module).__name__}.act must return an Observation or a JSON value: {error}"
            ) from None

    async def _wait(self, decision: Decision) -> Observation:
        """Wait for the answer to a wait decision, or for its seconds; in a fork, reuse the source's answer."""
        run = self.run
        run.phase = "wait"
        form = {
            name: value for name in ("prompt", "schema", "seconds") if (value := getattr(decision, name)) is not None
        }
        place = f"{run.run_id}|{run.step}|wait|".encode() + dump(form | {"rationale": decision.rationale})
        seconds = decision.seconds
        request = WaitRequest(
            id=blake2b(place, digest_size=8).hexdigest(),
            prompt=decision.prompt if decision.prompt is not None else decision.rationale,
            schema=form.get("schema"),
            deadline=None if seconds is None else run.clock.time() + seconds,
        )
        timer = seconds is not None and decision.prompt is None and decision.schema is None
        known = run.reuse is None or request.id in run.waits.answers
        reused = run.reuse.answer(run.step, request) if run.reuse is not None and not known else None
        if reused is not None:
            return Observation((), run.waits.give(request, reused[0]))
        return Observation((), await run.waits.answer(request, timer=timer))

    async def _choose(self, state: StateSchema, decision: Decision) -> Decision | Adopted:
        """Resolve a branch, or repeat the choice that an earlier attempt has recorded."""
        run = self.run
        run.phase = "branch"
        recorded, self.recorded_choice = self.recorded_choice, None
        nest, self.nest = self.nest, self.nest + 1
        assert self.choose is not None
        assert self.adopt is not None
        chosen: int | Adopted
        if recorded is None:
            chosen = await self.choose(state, decision, nest, self.again)
        else:
            chosen = recorded["candidate"] if "candidate" in recorded else await self.adopt(recorded)
        if isinstance(chosen, Adopted):
            return chosen
        candidates = cast(tuple[Decision, ...], decision.candidates)
        return self._write_decision(candidates[chosen], candidate=chosen)

    def _commit(self, want: Commit) -> None:
        """Write the commit of a step and move to the next; write a snapshot if patches outweigh the last one twice."""
        run = self.run
        members: dict[str, Any] = {"patch": want.patch}
        observation = want.observation
        if observation.results or observation.value is not None:
            members["observation"] = observation.to_dict()
        if run.account.calls or run.account.estimated:
            members["usage"] = run.account.to_dict()
        if run.besides is not None:
            members["background"] = run.besides.usage()
        if run.stopping is not None:
            raise run.stopping
        before = run.writer.size
        run.write("commit", run.step, members)
        size = run.writer.size - before
        self.held.state = want.state
        run.step += 1
        run.journal = None
        if run.waits.shown:
            run.waits.committed()
        self.again, self.nest = False, 0
        self.patch_bytes += size
        if self.patch_bytes > SNAPSHOT_AFTER * self.snapshot_bytes:
            self._snapshot(dump(want.state))
        run.warn_time()

    def _snapshot(self, data: bytes) -> None:
        self.run.write("snapshot", self.run.step, {"state": orjson.Fragment(data)})
        self.snapshot_bytes = len(data)
        self.patch_bytes = 0

    async def _call(self, phase: str, hook: Callable[..., Any], kwargs: dict[str, Any], prefix: bytes = b"") -> Any:
        run = self.run
        frame = Frame(run, run.step, phase, None, prefix)
        token = set_frame(frame)
        try:
            value = await in_thread(hook, kwargs) if self._sync[phase] else hook(**kwargs)
            if type(value) is CoroutineType or inspect.isawaitable(value):
                value = await value
                task = own_task() if prefix else self.working  # candidates are asked in tasks of their own
                if task is not None and task.cancelling() and not is_cancelled():
                    await withdraw()
            return value
        finally:
            reset_frame(token)
            frame.over = True
            if frame.open:
                leave(frame)


def as_decision(module: AgentModule[Any], value: Any, candidate: int | None) -> Decision:
    """Return what `decide` returned; raises DecisionError if it is not a Decision, or branches inside a branch."""
    if not isinstance(value, Decision):
        raise DecisionError(
            f"{type(module).__name__}.decide returned {type(value).__name__}; "
            "it must return a Decision, such as Decision.act([...]) or Decision.final('...')"
        )
    if candidate is not None and isinstance(value.candidates, int):
        raise DecisionError(
            f"{type(module).__name__}.decide was asked for candidate {candidate} and asked to be asked again "
            f"(branch({value.candidates})); take `candidate` as a parameter (None when it is not asked for one)"
        )
    return value


def _nothing() -> None:
    """Do nothing: the default for removing a deadline that was never set."""
