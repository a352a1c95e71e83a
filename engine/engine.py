"""The engine: what users hold. It prepares a run, hands it to the runner, and gives back the result."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Generic, Literal, cast

import anyio
from typing_extensions import TypeVar

from ..tasks import (
    EnvironmentMismatchError,
    Task,
    TaskValidationIssue,
    as_task,
    check_task,
    open_environment,
    use_environment,
)
from ..traces import SUFFIX, Trace, TraceNotFoundError, TraceWriter
from .children.explorer import Explorer
from .concurrency.cancellation import cancel_requests
from .concurrency.signals import run_with_signals
from .concurrency.threads import in_thread
from .effects.budget import Account, RuntimeBudget
from .effects.context import counted_live
from .effects.redaction import Redactor, make_redactor, redacted_task
from .effects.tools import check_dict, check_tools
from .endings import RunStatus, StopReason
from .errors import DivergenceError, EngineUsageError
from .first_state import input_issues
from .loop.stop_criteria import StopCriteria
from .module import AgentModule, MakesModule, module_of
from .module_import import refuse_while_importing
from .replay.divergence import Divergence
from .replay.recorded_step import Settled
from .replay.unknown_effects import UNKNOWN_EFFECT, Answers
from .replay.verify import verify as verify_trace
from .result import RunError, RunResult
from .run.clock import Clock, SystemClock
from .run.finish import Outcome, finish
from .run.fork import Edit, Origin, origin_of
from .run.header import header_of
from .run.live_run import LiveRun, Observer, new_seed
from .run.resume import Resumption, prepare_resume
from .run.run_ids import new_run_id
from .run.runner import Runner
from .run.stream import RunStream
from .run.waits import OnWait
from .state.model import StateSchema
from .strategies.protocol import BranchStrategy

TraceLike = Trace | Path | str
R = TypeVar("R")
S = TypeVar("S", bound=StateSchema, default=Any)
log = logging.getLogger("refold.runs")


class Engine(Generic[S]):
    """Runs one module's tasks; one engine runs many at once.

    Args:
        module: what decides, acts and reduces.
        budget: what each run may use; each field that a task's budget sets takes its place.
        stop: further stop criteria, beside the one that always holds.
        branch: how branch decisions are decided (see `BranchStrategy`); by default as the module says, which is to
            take the first candidate.
        on_wait: answers a WaitRequest, sync or async, so that the run goes on at once; what it answers with `...`
            stays open. Without it a run that waits is suspended, and `resume` takes it up again.
        traces: a folder that gets a file a run; None keeps each trace in memory.
        observers: called with each record as it is written; one that raises is reported once and dropped.
        durability: "process", "power" or "none"; see `TraceWriter`.
        redact: True replaces the secrets in the environment; a list or mapping adds further values; False is none.
        clock: where time comes from; the system's if None.
        seed: of all randomness; one is drawn, and recorded, if None.
        workspace: the folder that a task's relative paths start from; the current one if None.
        max_children: how many child runs of one branch are at work at a time.
        shared_env: lets child runs work in their parent's environment, where it cannot be forked.
    """

    def __init__(
        self,
        module: AgentModule[S] | MakesModule[S],
        *,
        budget: RuntimeBudget | None = None,
        stop: Sequence[StopCriteria] = (),
        branch: BranchStrategy | None = None,
        on_wait: OnWait | None = None,
        traces: Path | str | None = None,
        observers: Sequence[Observer] = (),
        durability: Literal["process", "power", "none"] = "process",
        redact: bool | Redactor | Iterable[str] | Mapping[str, str] = True,
        clock: Clock | None = None,
        seed: int | None = None,
        workspace: Path | str | None = None,
        max_children: int = 16,
        shared_env: bool = False,
    ) -> None:
        module = module_of(module)
        check_tools(module.tools)
        self.module = module
        self.budget = budget or RuntimeBudget()
        self.stop = _several("stop", stop)
        if on_wait is not None and not callable(on_wait):
            raise EngineUsageError(f"on_wait must be a function of a WaitRequest, got {type(on_wait).__name__}")
        self.on_wait = on_wait
        self.traces = _folder("traces", traces)
        self.observers = _several("observers", observers)
        self.durability: Literal["process", "power", "none"] = durability
        self.clock = clock or SystemClock()
        if seed is not None and not (type(seed) is int and -(2**63) <= seed < 2**64):
            raise EngineUsageError(f"seed must be a whole number of at most 64 bits, got {seed!r}")
        self.seed = seed
        self.workspace = _folder("workspace", workspace)
        branch = module.branch if branch is None else branch
        if isinstance(branch, type) or not callable(getattr(branch, "choose", None)):
            given = f"the class; write {branch.__name__}()" if isinstance(branch, type) else type(branch).__name__
            raise EngineUsageError(f"branch must be a strategy, such as SelectFirst(), got {given}")
        self.branch = branch
        if type(max_children) is not int or max_children < 1:
            raise EngineUsageError(f"max_children must be a whole number of at least 1, got {max_children!r}")
        self.max_children = max_children
        self.shared_env = shared_env
        self._redactor = make_redactor(redact)

    # running

    def run(self, task: Task | str) -> RunResult[S]:
        """Runs a task to its end. Inside a running event loop use `await arun(task)`."""
        return self._sync(lambda: self.arun(task), "arun")

    async def arun(self, task: Task | str) -> RunResult[S]:
        """Runs a task to its end, on asyncio or trio.

        A run that fails returns a result that says so. Cancellation and Ctrl-C write the end and are raised on, with
        `.result` on the exception.
        """
        return await self._start(as_task(task), self.observers, self.traces)

    @asynccontextmanager
    async def stream(self, task: Task | str) -> AsyncIterator[RunStream]:
        """Runs a task and gives its records as they are written.

            async with engine.stream(task) as run:
                async for record in run: ...
            run.result

        Leaving the block early cancels the run. `run.result` is there once the records have ended, also then.
        """
        stream = RunStream()
        async with anyio.create_task_group() as group:

            async def work() -> None:
                try:
                    stream.result_or_none = await self._start(as_task(task), (*self.observers, stream.put), self.traces)
                except Exception as error:  # noqa: BLE001 - raised on below, outside of the task group
                    stream.error = error
                except BaseException as cancelled:
                    stream.result_or_none = getattr(cancelled, "result", None)
                    raise
                finally:
                    stream.end()

            group.start_soon(work)
            try:
                yield stream
            finally:
                group.cancel_scope.cancel()
        if stream.error is not None:
            raise stream.error

    def resume(
        self,
        trace: TraceLike,
        value: Any = ...,
        *,
        request: str | None = None,
        budget: RuntimeBudget | None = None,
        on_divergence: Literal["fail", "fork", "ignore"] = "fail",
    ) -> RunResult[S]:
        """Goes on with a run from its last whole record; see `aresume`."""
        return self._sync(
            lambda: self.aresume(trace, value, request=request, budget=budget, on_divergence=on_divergence), "aresume"
        )

    async def aresume(
        self,
        trace: TraceLike,
        value: Any = ...,
        *,
        request: str | None = None,
        budget: RuntimeBudget | None = None,
        on_divergence: Literal["fail", "fork", "ignore"] = "fail",
    ) -> RunResult[S]:
        """Goes on with a run from its last whole record: no effect that ended runs again.

        What is there is verified first. It goes on under the budget it had, or under `budget` in its place. A run
        that is completed, or that its budget (if no other is given) or a stop criterion ended, gives its result
        again. `value` answers the one request that is open (`result.waiting`), or the one named by `request`; a mapping
        of request ids to values answers several. Where the fate of a call is not known, `on_wait` is asked, else the
        result waits, for one of `{"ran": result}`, `{"failed": text}`, `{"retry": True}`; `result` is what the tool
        would have returned. Without a new answer a suspended run waits on, unless a request's time has passed.

        Raises:
            DivergenceError: the code no longer does what the trace recorded, or asks in the step that was cut off for
                something else than was recorded there. `on_divergence="ignore"` goes on with it
                nevertheless; "fork" leaves it as it is and gives the result of a fork, beside it or in `traces`, from
                the state before the first step that differs: it takes what was recorded after that, and `value`, for
                as long as the new code asks for the same.
            WaitAnsweredError: no open request takes this answer.
            TraceLockedError, TraceCorruptError, TraceNotFoundError: the trace cannot be continued.
        """
        refuse_while_importing()
        source = self._trace_source(trace)
        try:
            resumption = await prepare_resume(
                self.module,
                source,
                budget,
                self.durability,
                value,
                request,
                on_divergence,
                self.clock,
                self._redactor,
                self.on_wait,
            )
            return await self._continue(resumption)
        except DivergenceError as error:
            if on_divergence != "fork":
                raise
            first = error.divergences[0]
            if error.result is not None:  # the answers are in the trace by now
                value, request = ..., None
            return await self._leave(source, None if first.run else first.step, value, request, budget)

    async def _leave(
        self, source: Trace | Path, at: int | None, value: Any, request: str | None, budget: RuntimeBudget | None
    ) -> RunResult[S]:
        """Forks a run that the code no longer goes along with, beside it; what is told of its last step goes along."""
        writer, trace = TraceWriter.reopen(source)
        writer.close()
        settled = Settled()
        Answers(trace, settled.write, self._redactor, self.module, self.clock.time()).take(value, request)
        folder = self.traces
        if folder is None and trace.path is not None:
            folder = trace.path.parent
        cls, redactor = self.module.state_class, self._redactor
        origin = origin_of(trace, at, None, cls, budget, redactor, folder, reuse_effects=True, settled=settled)
        return await self._start(origin.task, self.observers, folder, origin)

    def fork(
        self,
        trace: TraceLike,
        at: int | None = None,
        edit: Edit | None = None,
        *,
        reuse_effects: bool = False,
        budget: RuntimeBudget | None = None,
    ) -> RunResult[S]:
        """Runs on from a state of another run; see `afork`."""
        return self._sync(lambda: self.afork(trace, at, edit, reuse_effects=reuse_effects, budget=budget), "afork")

    async def afork(
        self,
        trace: TraceLike,
        at: int | None = None,
        edit: Edit | None = None,
        *,
        reuse_effects: bool = False,
        budget: RuntimeBudget | None = None,
    ) -> RunResult[S]:
        """A new run whose first state is state `at` of a run, edited; what happened before is not done again.

        Args:
            trace: the run to fork; its trace is not changed.
            at: which of its states, from 0 to its number of steps; by default the last. Negative ones count back.
            edit: changes the state's draft, as `reduce` does, or values by JSON Pointer, set in their order ("/notes/-"
                adds to a list). None changes nothing.
            reuse_effects: takes the outcomes and answers that the run recorded, while the requests are the same, and
                runs live from the first that is not (`result.live_from`).
            budget: in place of the run's; tokens, money and time are counted anew, steps go on.

        The fork has the run's seed, so that two forks with the same edit and the same answers are equal. Files that
        the run wrote are not rewound. Its trace is kept as `run` keeps one.

        Raises:
            EngineUsageError: there is no such state, or it cannot be edited so.
            EngineOwnedFieldError: the edit sets a field that the engine alone writes.
            StateValueError, StateMigrationError: the state, edited or not, does not fit the module's class.
        """
        source = trace if isinstance(trace, Trace) else self._trace_source(trace)
        loaded = source if isinstance(source, Trace) else Trace.load(source)
        cls, redactor, folder = self.module.state_class, self._redactor, self.traces
        origin = origin_of(loaded, at, edit, cls, budget, redactor, folder, reuse_effects=reuse_effects)
        return await self._start(origin.task, self.observers, self.traces, origin)

    def verify(self, trace: TraceLike) -> list[Divergence]:
        """Runs the hooks of a trace again, with its outcomes served; gives where they differ, [] if nowhere."""
        return self._sync(lambda: self.averify(trace), "averify")

    async def averify(self, trace: TraceLike) -> list[Divergence]:
        """`verify`, inside an event loop."""
        source = self._trace_source(trace)
        return await verify_trace(source if isinstance(source, Trace) else Trace.load(source), self.module)

    # how a run is made

    def _trace_source(self, trace: TraceLike) -> Trace | Path:
        if isinstance(trace, Trace):
            return trace if trace.path is None else trace.path
        if not isinstance(cast(object, trace), Path | str):
            raise EngineUsageError(f"a trace is a Trace, the path of its file, or a run's id, got {trace!r:.80}")
        path = Path(trace)
        if path.exists() or self.traces is None:
            return path
        named = self.traces / f"{trace}{SUFFIX}"
        if not named.exists():
            raise TraceNotFoundError(f"there is no trace at {path}, and no run {str(trace)!r} in {self.traces}", path)
        return named

    def _live(
        self, run_id: str, seed: int, writer: TraceWriter, budget: RuntimeBudget, observers: Sequence[Observer]
    ) -> LiveRun:
        redactor = self._redactor.copy() if self._redactor is not None else None
        account = Account(budget, lambda what, used, limit: run.warn_budget(what, used, limit))
        run = LiveRun(run_id, seed, writer, account, self.clock, redactor, observers, self.on_wait)
        run.engine = self
        return run

    async def _start(
        self, task: Task, observers: Sequence[Observer], folder: Path | None, origin: Origin | None = None
    ) -> RunResult[S]:
        refuse_while_importing()
        if self._redactor is not None:
            task = redacted_task(task, self._redactor)
        run_id = new_run_id(task.id)
        path = folder / f"{run_id}{SUFFIX}" if folder is not None else None
        if origin is not None:
            budget, seed, link, source = origin.budget, origin.seed, origin.parent, origin.source
        else:
            budget, seed, link, source = self.budget.under(task.budget), self._new_seed(), None, None
        with TraceWriter.create(path, durability=self.durability, parent=source) as writer:
            run = self._live(run_id, seed, writer, budget, observers)
            runner = Runner(self.module, task, run, self.stop, budget.max_runtime_seconds)
            run.write("header", 0, header_of(run_id, self.module, task.to_dict(), budget, seed, link))
            if origin is not None:
                run.path = origin.parent["path"]
                run.reuse = origin.reuse(run.tell_live)
                runner.begin(origin.state, origin.data)
            return logged(await self._drive(runner, task, fresh=origin is None))

    def _new_seed(self) -> int:
        return self.seed if self.seed is not None else new_seed()

    async def _continue(self, resumption: Resumption) -> RunResult[S]:
        with resumption.writer as writer:
            run = self._live(resumption.run_id, resumption.seed, writer, resumption.budget, self.observers)
            for record in resumption.written:
                run.show(record)
            if resumption.done is not None:
                return logged(resumption.done)
            task = resumption.task
            runner = Runner(self.module, task, run, self.stop, resumption.budget.max_runtime_seconds)
            resumption.enter(run, runner)
            result = logged(await self._drive(runner, task, fresh=False))
            if run.diverged is not None:
                run.diverged.result = result
                raise run.diverged
            return result

    async def _drive(self, runner: Runner, task: Task, *, fresh: bool) -> RunResult[S]:
        """Preflight, environment, loop and end; opening and closing of the environment always pair."""
        run = runner.run
        result: RunResult[S] | None = None
        before = cancel_requests()
        with counted_live():
            try:
                outcome = await self._preflight(task, begun=runner.held.state is not None)
                if outcome is None:
                    tools = tuple(check_dict(self.module.tools))  # a module may have been given others since
                    async with AsyncExitStack() as stack:
                        environment = await stack.enter_async_context(
                            open_environment(task, self.workspace, tools=tools, resume=not fresh)
                        )
                        if environment is not None:
                            stack.enter_context(use_environment(environment))
                            if not fresh:
                                data = {"environment": environment.type}
                                run.write("event", run.step, {"name": "environment_not_rewound", "data": data})
                        Explorer(self, runner, environment)
                        outcome = await runner.work()
                        result = await finish(run, task, runner.held.state, outcome, environment)
            except EnvironmentMismatchError as error:
                failure = RunError.of_issues(type(error).__name__, error.issues, "environment")
                outcome = Outcome(StopReason.env_capability_mismatch, RunStatus.failed, failure)
            except Exception as error:  # noqa: BLE001 - what fails around the run is its end too, and told in the result
                failure = RunError.of(error, run.step, "environment")
                outcome = Outcome(StopReason.unrecoverable_error, RunStatus.failed, failure)
            except BaseException as raised:  # noqa: BLE001 - the end is written, then it is raised on
                outcome = Outcome(StopReason.cancelled, RunStatus.cancelled, RunError.of(raised, run.step), raised)
            if result is None:
                result = await finish(run, task, runner.held.state, outcome, None)
        to_raise = outcome.raised
        if to_raise is None and cancel_requests() > before:
            to_raise = asyncio.CancelledError()  # told once, to an evaluator or environment that kept it back
        if to_raise is not None:
            to_raise.result = result  # type: ignore[attr-defined]
            raise to_raise
        return result

    async def _preflight(self, task: Task, *, begun: bool) -> Outcome | None:
        """What is wrong with the task; of its inputs only while `init_state` is still to take them."""
        issues = check_task(task) if not task.resources else await self._check_resources(task)
        if not begun:
            issues = [*issues, *input_issues(self.module, task)]
        if not issues:
            return None
        error = RunError.of_issues("TaskInvalidError", issues, "preflight")
        return Outcome(StopReason.task_validation_failed, RunStatus.failed, error)

    async def _check_resources(self, task: Task) -> list[TaskValidationIssue]:
        """In a thread: it looks at files."""
        found: list[TaskValidationIssue] = await in_thread(check_task, {"task": task, "workspace": self.workspace})
        return found

    def _sync(self, work: Callable[[], Awaitable[R]], twin: str) -> R:
        """Runs async work from sync code, with SIGTERM turned into a clean end where nobody else handles it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise EngineUsageError(f"an event loop is running in this thread; use `await engine.{twin}(...)`")
        return run_with_signals(work)


def logged(result: RunResult[S]) -> RunResult[S]:
    """The result; one warning on the logger `refold.runs` where the run has failed, or waits for a call's fate.

    Nothing is raised then, and nothing else says so.
    """
    fates = [str(each.details.get("name")) for each in result.waiting if each.kind == UNKNOWN_EFFECT]
    if result.status is RunStatus.failed:
        log.warning("%s", result.told())
    elif fates:
        log.warning(
            "run %s waits: nobody knows whether %s happened; find out, and answer {'ran': result}, {'failed': text} "
            "or {'retry': True} for each: engine.resume(trace, answer), Engine(..., on_wait=...), or refold resume%s",
            result.run_id,
            ", ".join(fates),
            f" {result.trace.path}" if result.trace.path is not None else "",
        )
    return result


def _folder(name: str, given: Any) -> Path | None:
    if given is None or isinstance(given, Path | str):
        return None if given is None else Path(given)
    raise EngineUsageError(f"{name} must be the path of a folder, got {given!r:.80}")


def _several(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(given)
    raise EngineUsageError(f"{name} must be a list, got {given!r:.80}; write {name}=[...]")


AgentModule.make_engine = Engine
