"""The Engine class: starts, resumes, forks and verifies runs.

An Engine turns each task, trace or fork into a RunPlan, carries out the plan, and returns the result.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Literal, cast

import anyio
from typing_extensions import TypeVar

from ..tasks import Task, as_task
from ..traces import Trace
from ..traces.errors import DivergenceError, TraceNotFoundError, UsageError
from ..traces.file.append_only import SUFFIX
from ..traces.file.writer import TraceWriter
from ..traces.stores import RunRef, TraceStore
from ..traces.stores.store_url import run_at
from . import options
from .children.registry import ChildRegistry
from .concurrency.signals import run_blocking
from .effects.budget import RuntimeBudget
from .effects.redaction import Redactor
from .effects.tools import check_tools
from .loop.stop_criteria import StopCriteria
from .module import MakesModule, Module, module_of, refuse_while_importing
from .options import checked, has
from .replay.answers import answered
from .replay.divergence import Divergence
from .replay.verify import find_divergences
from .result import UNANSWERED, RunResult
from .run.begin_and_end import execute
from .run.clock import Clock, SystemClock
from .run.start.fork import Edit, plan_of_fork
from .run.start.plan import Observer, RunOptions, RunPlan, Watcher
from .run.start.resume import prepare_resume
from .run.stream import RunStream
from .run.waits import OnWait
from .state.model import StateSchema
from .strategies.protocol import BranchStrategy

TraceLike = Trace | Path | str | RunRef
R = TypeVar("R")
S = TypeVar("S", bound=StateSchema, default=Any)


class Engine(Generic[S]):
    """Runs the tasks of one module, many at once if need be.

    Args:
        module: the module, or an Agent that makes one.
        budget: the limits of each run; a field set in a task's budget takes precedence.
        stop: further stop criteria, beside `FinalResultCriteria`, which every run has.
        branch: the strategy for branch decisions; by default the module's, which usually is `SelectFirst`.
        on_wait: a function, sync or async, that answers a WaitRequest, so that the run continues at once. If the
            function returns `UNANSWERED`, the request stays open. Without an answer, the run is suspended until
            `resume`.
        traces: a folder that gets one file for each run, or a store, or its URL (see `open_store`); None keeps each
            trace in memory.
        observers: functions that are called with each record when it is written. An observer that raises is reported
            once, and not called again.
        watchers: functions that are called with a run's id, its trace so far, and each record when it is written; also
            for child runs, unlike observers. `refold.traces.export.LiveSpans` is one.
        durability: "process", "power" or "none"; see `TraceWriter`.
        redact: True replaces secrets from environment variables; a list or mapping adds secrets; False replaces
            nothing.
        clock: the source of time; the system's clock if None.
        seed: the seed of all random numbers; if None, each run draws one and records it.
        workspace: the folder to which a task's relative paths refer; the current folder if None.
        max_children: how many child runs of one branch may be at work at a time.
        max_parallel: how many calls of one step may run at the same time. The other calls start, in their order, when a
            call has ended.
        shared_env: let candidates' runs work in their parent's environment if it cannot be forked.
    """

    def __init__(
        self,
        module: Module[S] | MakesModule[S],
        *,
        budget: RuntimeBudget | None = None,
        stop: Sequence[StopCriteria] = (),
        branch: BranchStrategy | None = None,
        on_wait: OnWait | None = None,
        traces: Path | str | TraceStore | None = None,
        observers: Sequence[Observer] = (),
        watchers: Sequence[Watcher] = (),
        durability: Literal["process", "power", "none"] = "process",
        redact: bool | Redactor | Iterable[str] | Mapping[str, str] = True,
        clock: Clock | None = None,
        seed: int | None = None,
        workspace: Path | str | None = None,
        max_children: int = 16,
        max_parallel: int = 32,
        shared_env: bool = False,
    ) -> None:
        module = module_of(module)
        check_tools(module.tools)
        self.module = module
        self.budget = options.budget(budget) or RuntimeBudget()
        self.stop = options.stop_criteria(stop)
        self.on_wait = checked("on_wait", on_wait, on_wait is None or callable(on_wait), "a function of a WaitRequest")
        self.traces = options.home(traces)
        self.observers: tuple[Observer, ...] = options.functions("observers", observers, "a Record")
        self.watchers: tuple[Watcher, ...] = options.functions(
            "watchers", watchers, "a run's id, its trace and a Record"
        )
        self.durability = options.durability(durability)
        clock = SystemClock() if clock is None else clock
        self.clock = checked("clock", clock, has(clock, "time", "monotonic"), "a Clock")
        whole = seed is None or (type(seed) is int and -(2**63) <= seed < 2**64)
        self.seed = checked("seed", seed, whole, "a whole number of at most 64 bits")
        self.workspace = options.workspace(workspace)
        branch = module.branch if branch is None else branch
        self.branch = checked("branch", branch, has(branch, "choose"), "a strategy, such as SelectFirst()")
        self.max_children = options.positive("max_children", max_children)
        self.max_parallel = options.positive("max_parallel", max_parallel)
        self.shared_env = checked("shared_env", shared_env, type(shared_env) is bool, "True or False")
        self._redactor = options.redactor(redact)

    def __setattr__(self, name: str, value: object) -> None:
        # Options are checked in the constructor only, and runs of this engine may be using them.
        made = "_redactor" in self.__dict__  # by the last line of the constructor; a subclass may add its own
        if name in self.__dict__ or (made and type(self) is Engine and not name.startswith("__")):
            raise UsageError(f"Engine.{name} cannot be changed after construction; make another Engine with it")
        super().__setattr__(name, value)

    # running

    def run(self, task: Task | str, *, blobs: Callable[[str], bytes] | None = None) -> RunResult[S]:
        """Run a task to its end.

        Inside a running event loop, use `await arun(task)`. See `arun` for `blobs`.
        """
        return self._sync(lambda: self.arun(task, blobs=blobs), "arun")

    async def arun(self, task: Task | str, *, blobs: Callable[[str], bytes] | None = None) -> RunResult[S]:
        """Run a task to its end, on asyncio or trio.

        `blobs` reads bytes that the task's inputs refer to, by their hash: the `blob` method of another trace. A
        failed run returns a result, too, with its `status` and `error`. A cancellation or Ctrl-C ends the run, is
        recorded in the trace, and is raised again with the result as its attribute `result`.
        """
        task = as_task(task)
        budget = self.budget.under(task.budget)
        plan = RunPlan.fresh(self.module, task, budget, self._options(), self.traces, self.seed, blobs)
        return await execute(plan)

    @asynccontextmanager
    async def stream(
        self,
        task: Task | str | None = None,
        *,
        resume: TraceLike | None = None,
        fork: TraceLike | None = None,
        **how: Any,
    ) -> AsyncIterator[RunStream]:
        """Run a task, and yield its records when they are written.

            async with engine.stream(task) as run:
                async for record in run: ...
            run.result

        In place of a task, the stream can resume a run, or fork one: `engine.stream(resume=trace, value="yes")`. `how`
        are the other arguments of `arun`, `aresume` or `afork`.

        Leaving the block early cancels the run. `run.result` is available after the last record, also of a cancelled
        run. Raises UsageError unless there is exactly one of `task`, `resume` and `fork`.
        """
        if [task, resume, fork].count(None) != 2 or (how.keys() - {"blobs"} and task is not None):
            raise UsageError(
                "engine.stream takes a task, resume=TRACE or fork=TRACE, one of the three. "
                "The last two take the further arguments of aresume and afork, a task only `blobs`."
            )
        stream, raised = RunStream(), list[BaseException]()
        observed = copy(self)
        observed.__dict__["observers"] = (*self.observers, stream.put)

        def begun() -> Awaitable[RunResult[S]]:
            if resume is not None:
                return observed.aresume(resume, **how)
            return observed.afork(fork, **how) if fork is not None else observed.arun(cast(Task, task), **how)

        async with anyio.create_task_group() as group:

            async def work() -> None:
                try:
                    stream.end(await begun())
                except Exception as error:  # noqa: BLE001 - raised below, outside the task group, which would wrap it
                    stream.end(error=error)
                except BaseException as cancelled:
                    stream.end(getattr(cancelled, "result", None))
                    raise

            group.start_soon(work)
            try:
                yield stream
            except (anyio.get_cancelled_exc_class(), GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - raised below, too
                raised.append(error)
            finally:
                group.cancel_scope.cancel()
        if raised:
            raise raised[0]
        if stream.error is not None:
            raise stream.error

    def resume(
        self,
        trace: TraceLike,
        value: Any = UNANSWERED,
        *,
        request: str | None = None,
        by: str | None = None,
        budget: RuntimeBudget | None = None,
        on_divergence: Literal["fail", "fork", "ignore"] = "fail",
        without_files: bool = False,
    ) -> RunResult[S]:
        """Resume a run from its last complete record; see `aresume`."""
        return self._sync(
            lambda: self.aresume(
                trace,
                value,
                request=request,
                by=by,
                budget=budget,
                on_divergence=on_divergence,
                without_files=without_files,
            ),
            "aresume",
        )

    async def aresume(
        self,
        trace: TraceLike,
        value: Any = UNANSWERED,
        *,
        request: str | None = None,
        by: str | None = None,
        budget: RuntimeBudget | None = None,
        on_divergence: Literal["fail", "fork", "ignore"] = "fail",
        without_files: bool = False,
    ) -> RunResult[S]:
        """Resume a run from its last complete record.

        Effects that have ended do not run again. The engine first verifies the recorded steps. If the run has
        completed, or has stopped and `budget` is None, its result is returned again. A suspended run without a new
        answer stays suspended, unless a request has expired.

        If a call started and did not finish, it might have run. If it is not idempotent, the engine asks `on_wait`, and
        suspends the run if there is no answer. The answer is one of `{"ran": result}`, with the result that the
        tool would have returned, `{"failed": text}` and `{"retry": True}`.

        Args:
            trace: the trace, the path of its file, or the run's id in the folder or store `traces`.
            value: the answer to the only open request (`result.waiting`), or to the request named by `request`. A
                mapping of request ids to values answers several.
            request: the id of the request that `value` answers.
            by: who answers, as the trace says it.
            budget: replaces the run's own budget.
            on_divergence: what to do if the code no longer does what the trace recorded. "fail" raises
                DivergenceError. "ignore" resumes the run nevertheless. "fork" leaves the run unchanged and returns the
                result of a fork, from the state before the first step that differs, or that started a child run whose
                code differs. The fork reuses the later outcomes, and `value`, as long as the new code makes the same
                requests. Its trace is in the folder `traces`, otherwise beside the run's.
            without_files: continue although files that the run had changed are gone with its environment (a scratch
                folder); the run finds the files as they were at its start.

        Raises:
            TaskError: files that the run had changed are gone, and `without_files` is not set.
            DivergenceError: the code no longer does what the trace recorded, or makes other requests in the
                unfinished step than the recorded ones.
            WaitAnsweredError: no open request takes this answer.
            TraceLockedError, TraceCorruptError, TraceNotFoundError: the trace cannot be continued.
        """
        refuse_while_importing()
        checked(
            "on_divergence", on_divergence, on_divergence in ("fail", "fork", "ignore"), "'fail', 'fork' or 'ignore'"
        )
        budget, source = options.budget(budget), self._trace_source(trace)
        run_options = replace(self._options(), on_divergence=on_divergence, without_files=without_files)
        try:
            plan = await prepare_resume(self.module, source, run_options, budget, value, request, by=by)
            return await execute(plan)
        except DivergenceError as error:
            if on_divergence != "fork":
                raise
            first, at = error.divergences[0], error.fork_at
            if at is None and not first.run:
                at = first.step
            if error.result is not None:  # found only while the run continued: its trace has the answers by now
                value, request = UNANSWERED, None
            return await self._fork_diverged(source, at, value, request, budget, without_files)

    async def _fork_diverged(
        self,
        source: Trace | Path | RunRef,
        at: int | None,
        value: Any,
        request: str | None,
        budget: RuntimeBudget | None,
        without_files: bool,
    ) -> RunResult[S]:
        """Run a fork, from state `at`, of a run with diverged code.

        Answers given for the run's unfinished step carry over to the fork; the run itself is not changed.
        """
        writer, trace = TraceWriter.reopen(source)
        writer.close()
        answers = answered(trace, value, request, self._redactor, self.module, self.clock.time())
        folder = self.traces
        if folder is None and trace.place is not None:
            folder = trace.place.store
        elif folder is None and trace.path is not None:
            folder = trace.path.parent
        expected, module = replace(self._options(), without_files=without_files), self.module
        plan = plan_of_fork(module, trace, at, None, budget, expected, folder, reuse_effects=True, answers=answers)
        return await execute(plan)

    def fork(
        self,
        trace: TraceLike,
        at: int | None = None,
        edit: Edit | None = None,
        *,
        reuse_effects: bool | Literal["only"] = False,
        live_calls: Collection[str] = (),
        budget: RuntimeBudget | None = None,
        without_files: bool = False,
    ) -> RunResult[S]:
        """Start a run from a state of another run; see `afork`."""
        options: dict[str, Any] = {"reuse_effects": reuse_effects, "live_calls": live_calls, "budget": budget}
        return self._sync(lambda: self.afork(trace, at, edit, without_files=without_files, **options), "afork")

    async def afork(
        self,
        trace: TraceLike,
        at: int | None = None,
        edit: Edit | None = None,
        *,
        reuse_effects: bool | Literal["only"] = False,
        live_calls: Collection[str] = (),
        budget: RuntimeBudget | None = None,
        without_files: bool = False,
    ) -> RunResult[S]:
        """Start a new run from state `at` of another run, edited.

        Earlier steps do not run again.

        Args:
            trace: the run to fork; its trace is not changed.
            at: the number of the state, from 0 to the number of steps; by default the last. Negative numbers count from
                the end.
            edit: a function that changes the state's draft, as `reduce` does; or a mapping of JSON Pointers to values,
                set in this order ("/notes/-" appends to a list). None changes nothing.
            reuse_effects: take the recorded outcomes and answers while the fork makes the same requests, and run live
                from the first request that differs (`result.live_from`). "only" runs nothing live: such a request ends
                the fork with RecordedValueError.
            live_calls: names of tools and effects whose recorded outcomes are not taken, such as those whose code has
                changed; other calls are reused all the same.
            budget: replaces the run's own budget. The fork continues the state's count of steps; tokens, money and
                time start at 0.
            without_files: fork although files that the run had changed are gone with its environment.

        The fork has the run's seed, so two forks with the same edit and the same answers are equal. Files that the run
        has written are not rewound. The fork's trace goes where `run` puts traces.

        Raises:
            UsageError: there is no state `at`, or the edit cannot be made.
            TaskError: files that the run had changed are gone, and `without_files` is not set.
            StateError: the edit sets a field that the engine alone writes.
            StateValueError, StateError: the state, edited or not, does not fit the module's class.
        """
        budget, loaded = options.budget(budget), self.load(trace)
        expected, home = replace(self._options(), without_files=without_files), self.traces
        how: dict[str, Any] = {"reuse_effects": reuse_effects, "live_calls": live_calls}
        plan = plan_of_fork(self.module, loaded, at, edit, budget, expected, home, **how)
        return await execute(plan)

    def verify(self, trace: TraceLike) -> list[Divergence]:
        """Run a trace's hooks with its recorded outcomes; return the divergences.

        Only `init_state`, `decide` and `reduce` run: no tool, no effect, no `act`.
        """
        return self._sync(lambda: self.averify(trace), "averify")

    async def averify(self, trace: TraceLike) -> list[Divergence]:
        """As `verify`, inside an event loop."""
        source = self._trace_source(trace)
        return await find_divergences(self.module, source if isinstance(source, Trace) else Trace.load(source))

    # how a run is made

    def load(self, trace: TraceLike) -> Trace:
        """Return a trace as it is, or load the one named."""
        source = trace if isinstance(trace, Trace) else self._trace_source(trace)
        return source if isinstance(source, Trace) else Trace.load(source)

    def _trace_source(self, trace: TraceLike) -> Trace | Path | RunRef:
        """Return a Trace in memory, otherwise its path or place."""
        if isinstance(trace, Trace):
            if trace.place is not None:
                return self._own(trace.place)
            return trace if trace.path is None else trace.path
        if isinstance(trace, RunRef):
            return self._own(trace)
        if not isinstance(cast(object, trace), Path | str):
            raise UsageError(f"trace must be a Trace, the path of its file, or a run's id, got {trace!r:.80}")
        if (place := run_at(trace)) is not None:
            return self._own(place)
        path = Path(trace)
        if path.exists():
            return path
        if self.traces is None:
            looks_like_an_id = path.name == str(trace) and not path.name.endswith(SUFFIX)
            hint = "; for a run's id, name the folder of traces: Engine(..., traces=DIR)" if looks_like_an_id else ""
            raise TraceNotFoundError(f"there is no trace at {path}{hint}", path)
        if not isinstance(self.traces, Path):
            return RunRef(self.traces, str(trace))
        named = self.traces / f"{trace}{SUFFIX}"
        if not named.exists():
            raise TraceNotFoundError(f"there is no trace at {path}, and no run {str(trace)!r} in {self.traces}", path)
        return named

    def _own(self, place: RunRef) -> RunRef:
        """Return a place in this engine's store, which may have a lease."""
        home = self.traces
        if home is None or isinstance(home, Path) or home.url != place.store.url:
            return place
        return RunRef(home, place.run_id, place.above)

    def _options(self) -> RunOptions:
        """Return the options of this engine's runs."""
        return RunOptions(
            children=ChildRegistry,
            stop=self.stop,
            branch=self.branch,
            on_wait=self.on_wait,
            observers=self.observers,
            watchers=self.watchers,
            durability=self.durability,
            clock=self.clock,
            redactor=self._redactor,
            workspace=self.workspace,
            max_children=self.max_children,
            max_parallel=self.max_parallel,
            shared_env=self.shared_env,
        )

    def _sync(self, work: Callable[[], Awaitable[R]], twin: str) -> R:
        return run_blocking(work, f"await engine.{twin}(...)")


def verify(module: Module[Any] | MakesModule[Any], trace: Trace | Path | str) -> list[Divergence]:
    """Run a trace's hooks with its outcomes, and return the divergences.

    An empty list means that the module does what its trace recorded. `trace` is a Trace or the path of its file; for a
    run's id, use `Engine(module, traces=...).verify(run_id)`. Only `init_state`, `decide` and `reduce` run: no effect,
    no tool, no `act`.

    Raises:
        UsageError: inside a running event loop; use `await averify(module, trace)` there.
        TraceNotFoundError, TraceCorruptError: there is no such trace, or its file is corrupt.
    """
    return Engine(module).verify(trace)


async def averify(module: Module[Any] | MakesModule[Any], trace: Trace | Path | str) -> list[Divergence]:
    """Verify a trace as `verify` does, inside an event loop."""
    return await Engine(module).averify(trace)
