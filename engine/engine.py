"""The Engine class: it turns each task, trace or fork into a RunPlan, has it carried out, and returns the result."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Literal, cast

import anyio
from typing_extensions import TypeVar

from ..errors import DivergenceError, EngineUsageError, TraceNotFoundError
from ..tasks import Task, as_task
from ..traces import Trace
from ..traces.file.store import SUFFIX
from ..traces.file.writer import TraceWriter
from .children.registry import ChildRegistry
from .concurrency.signals import run_blocking
from .effects.budget import RuntimeBudget
from .effects.redaction import Redactor, make_redactor
from .effects.tools import check_tools
from .loop.stop_criteria import StopCriteria
from .module import MakesModule, Module, module_of
from .module_import import refuse_while_importing
from .replay.divergence import Divergence
from .replay.recorded_step import Settled
from .replay.unknown_effects import Answers
from .replay.verify import find_divergences
from .result import UNANSWERED, RunResult
from .run.clock import Clock, SystemClock
from .run.drive import execute, logged
from .run.fork import Edit, Origin, origin_of
from .run.plan import Observer, RunOptions, RunPlan
from .run.resume import prepare_resume
from .run.stream import RunStream
from .run.waits import OnWait
from .state.model import StateSchema
from .strategies.protocol import BranchStrategy

TraceLike = Trace | Path | str
R = TypeVar("R")
S = TypeVar("S", bound=StateSchema, default=Any)


class Engine(Generic[S]):
    """Runs the tasks of one module.

    One engine can run many at once.

    Args:
        module: the module, or an Agent that makes one.
        budget: the limits of each run; a field set in a task's budget takes precedence.
        stop: further stop criteria, beside `FinalResultCriteria`, which every run has.
        branch: the strategy for branch decisions; by default the module's, which usually is `SelectFirst`.
        on_wait: a function, sync or async, that answers a WaitRequest, so that the run continues at once. A request
            that it answers with `UNANSWERED` stays open. Without an answer, the run is suspended until `resume`.
        traces: a folder that gets one file for each run; None keeps each trace in memory.
        observers: functions that are called with each record when it is written. An observer that raises is reported
            once, and not called again.
        durability: "process", "power" or "none"; see `TraceWriter`.
        redact: True replaces secrets from environment variables; a list or mapping adds further values; False replaces
            nothing.
        clock: the source of time; the system's clock if None.
        seed: the seed of all random numbers; if None, each run draws one and records it.
        workspace: the folder to which a task's relative paths refer; the current folder if None.
        max_children: how many child runs of one branch may be at work at a time.
        shared_env: if the environment cannot be forked, child runs work in their parent's environment.
    """

    def __init__(
        self,
        module: Module[S] | MakesModule[S],
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
        """Run a task to its end.

        Inside a running event loop, use `await arun(task)`.
        """
        return self._sync(lambda: self.arun(task), "arun")

    async def arun(self, task: Task | str) -> RunResult[S]:
        """Run a task to its end, on asyncio or trio.

        A failed run returns a result, too: its `status` and `error` say so. A cancellation or Ctrl-C ends the run, is
        recorded in the trace, and is raised again with the result as its attribute `result`.
        """
        return await self._begun(as_task(task), self._options())

    @asynccontextmanager
    async def stream(self, task: Task | str) -> AsyncIterator[RunStream]:
        """Run a task, and yield its records when they are written.

            async with engine.stream(task) as run:
                async for record in run: ...
            run.result

        Leaving the block early cancels the run. `run.result` is available after the last record, also in that case.
        """
        stream = RunStream()
        async with anyio.create_task_group() as group:

            async def work() -> None:
                try:
                    options = replace(self._options(), observers=(*self.observers, stream.put))
                    stream.end(await self._begun(as_task(task), options))
                except Exception as error:  # noqa: BLE001 - raised below, outside the task group, which would wrap it
                    stream.end(error=error)
                except BaseException as cancelled:
                    stream.end(getattr(cancelled, "result", None))
                    raise

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
        value: Any = UNANSWERED,
        *,
        request: str | None = None,
        budget: RuntimeBudget | None = None,
        on_divergence: Literal["fail", "fork", "ignore"] = "fail",
    ) -> RunResult[S]:
        """Resume a run from its last whole record; see `aresume`."""
        return self._sync(
            lambda: self.aresume(trace, value, request=request, budget=budget, on_divergence=on_divergence), "aresume"
        )

    async def aresume(
        self,
        trace: TraceLike,
        value: Any = UNANSWERED,
        *,
        request: str | None = None,
        budget: RuntimeBudget | None = None,
        on_divergence: Literal["fail", "fork", "ignore"] = "fail",
    ) -> RunResult[S]:
        """Resume a run from its last whole record.

        Effects that have ended do not run again.

        The engine first verifies the recorded steps. A run that has completed, or that a stop criterion or its budget
        ended (and no other is given), returns its result again. A suspended run without a new answer stays suspended,
        unless the time of a request has passed.

        If a call has no outcome, nobody knows whether it happened: an unknown effect. The engine asks `on_wait`, and
        without an answer suspends the run. The answer is one of `{"ran": result}`, with the result that the tool would
        have returned, `{"failed": text}` and `{"retry": True}`.

        Args:
            trace: the trace, the path of its file, or the run's id in the folder `traces`.
            value: the answer to the one open request (`result.waiting`), or to the one named by `request`. A mapping
                of request ids to values answers several.
            request: the id of the request that `value` answers.
            budget: replaces the run's own budget.
            on_divergence: what to do if the code no longer does what the trace recorded. "fail" raises
                DivergenceError. "ignore" resumes the run nevertheless. "fork" leaves the run unchanged and returns the
                result of a fork, from the state before the first step that differs. The fork reuses the later
                outcomes, and `value`, as long as the new code makes the same requests. Its trace is in the folder
                `traces`, otherwise beside the run's.

        Raises:
            DivergenceError: the code no longer does what the trace recorded, or makes other requests in the
                unfinished step than were recorded there.
            WaitAnsweredError: no open request takes this answer.
            TraceLockedError, TraceCorruptError, TraceNotFoundError: the trace cannot be continued.
        """
        refuse_while_importing()
        if on_divergence not in ("fail", "fork", "ignore"):
            raise EngineUsageError(f"on_divergence must be 'fail', 'fork' or 'ignore', got {on_divergence!r}")
        source = self._trace_source(trace)
        options = replace(self._options(), on_divergence="ignore" if on_divergence == "ignore" else "fail")
        try:
            plan = await prepare_resume(self.module, source, options, budget, value, request)
            return logged(await execute(plan))
        except DivergenceError as error:
            if error.result is not None:
                logged(error.result)
            if on_divergence != "fork":
                raise
            first = error.divergences[0]
            if error.result is not None:  # found only while the run continued: its trace has the answers by now
                value, request = UNANSWERED, None
            return await self._fork_diverged(source, None if first.run else first.step, value, request, budget)

    async def _fork_diverged(
        self, source: Trace | Path, at: int | None, value: Any, request: str | None, budget: RuntimeBudget | None
    ) -> RunResult[S]:
        """Fork a run whose code has diverged, from its state `at`, and run the fork to its end.

        Answers given for the run's unfinished step carry over to the fork; the run itself is not changed.
        """
        writer, trace = TraceWriter.reopen(source)
        writer.close()
        settled = Settled()
        Answers(trace, settled.write, self._redactor, self.module, self.clock.time()).take(value, request)
        folder = self.traces
        if folder is None and trace.path is not None:
            folder = trace.path.parent
        cls, redactor = self.module.state_class, self._redactor
        origin = origin_of(trace, at, None, cls, budget, redactor, folder, reuse_effects=True, settled=settled)
        return await self._forked(origin, folder)

    def fork(
        self,
        trace: TraceLike,
        at: int | None = None,
        edit: Edit | None = None,
        *,
        reuse_effects: bool = False,
        budget: RuntimeBudget | None = None,
    ) -> RunResult[S]:
        """Start a run from a state of another run; see `afork`."""
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
        """Start a new run from state `at` of another run, edited.

        Earlier steps do not run again.

        Args:
            trace: the run to fork; its trace is not changed.
            at: the number of the state, from 0 to the number of steps; by default the last. Negative numbers count from
                the end.
            edit: a function that changes the state's draft, as `reduce` does. Or a mapping of JSON Pointers to values,
                set in this order; "/notes/-" appends to a list. None changes nothing.
            reuse_effects: take the recorded outcomes and answers as long as the fork makes the same requests, and run
                live from the first request that differs (`result.live_from`).
            budget: replaces the run's own budget. The fork counts its steps on from the state's; tokens, money and time
                start at 0.

        The fork has the run's seed, so two forks with the same edit and the same answers are equal. Files that the run
        has written are not rewound. The fork's trace goes where `run` puts traces.

        Raises:
            EngineUsageError: there is no such state, or it cannot be edited so.
            EngineOwnedFieldError: the edit sets a field that the engine alone writes.
            StateValueError, StateMigrationError: the state, edited or not, does not fit the module's class.
        """
        source = trace if isinstance(trace, Trace) else self._trace_source(trace)
        loaded = source if isinstance(source, Trace) else Trace.load(source)
        cls, redactor, folder = self.module.state_class, self._redactor, self.traces
        origin = origin_of(loaded, at, edit, cls, budget, redactor, folder, reuse_effects=reuse_effects)
        return await self._forked(origin, self.traces)

    def verify(self, trace: TraceLike) -> list[Divergence]:
        """Run the hooks of a trace again with its recorded outcomes.

        Returns the divergences, [] if there are none.
        """
        return self._sync(lambda: self.averify(trace), "averify")

    async def averify(self, trace: TraceLike) -> list[Divergence]:
        """As `verify`, inside an event loop."""
        source = self._trace_source(trace)
        return await find_divergences(self.module, source if isinstance(source, Trace) else Trace.load(source))

    # how a run is made

    def _trace_source(self, trace: TraceLike) -> Trace | Path:
        """Return a trace in memory, or the path of a trace's file.

        `trace` may also be a run's id. Raises TraceNotFoundError if there is no such run in the folder `traces`.
        """
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

    def _options(self) -> RunOptions:
        """Return what this engine sets for its runs."""
        return RunOptions(
            children=ChildRegistry,
            stop=self.stop,
            branch=self.branch,
            on_wait=self.on_wait,
            observers=self.observers,
            durability=self.durability,
            clock=self.clock,
            redactor=self._redactor,
            workspace=self.workspace,
            max_children=self.max_children,
            shared_env=self.shared_env,
        )

    async def _begun(self, task: Task, options: RunOptions) -> RunResult[S]:
        refuse_while_importing()
        budget = self.budget.under(task.budget)
        return logged(await execute(RunPlan.fresh(self.module, task, budget, options, self.traces, self.seed)))

    async def _forked(self, origin: Origin, folder: Path | None) -> RunResult[S]:
        refuse_while_importing()
        return logged(await execute(RunPlan.forked(self.module, origin, self._options(), folder)))

    def _sync(self, work: Callable[[], Awaitable[R]], twin: str) -> R:
        return run_blocking(work, f"await engine.{twin}(...)")


def _folder(name: str, given: Any) -> Path | None:
    """Return the path of a folder, or None.

    Raises EngineUsageError, naming the parameter, for anything else.
    """
    if given is None or isinstance(given, Path | str):
        return None if given is None else Path(given)
    raise EngineUsageError(f"{name} must be the path of a folder, got {given!r:.80}")


def _several(name: str, given: Any) -> tuple[Any, ...]:
    """Return the items of a list.

    Raises EngineUsageError, naming the parameter, for anything else.
    """
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(given)
    raise EngineUsageError(f"{name} must be a list, got {given!r:.80}; write {name}=[...]")
