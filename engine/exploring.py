"""How a branch is decided in a live run: candidates are weighed, or run as child runs, and the choice is written down.

Child runs have traces of their own, which begin with a state of the run they branch from, by reference. What a child
is called depends on its place in the tree alone, so that a run that is resumed finds the children it had.
"""

import inspect
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import anyio

from ..tasks import Environment, use_environment
from ..traces import SUFFIX, Trace, TraceNotFoundError, TraceWriter, branches_folder
from .branch import BranchStrategy, Node, Score
from .budget import Account
from .context import Frame, reset_frame, set_frame
from .decision import Decision
from .ending import Outcome, finish, with_reason
from .errors import BudgetExceeded, DecisionError, EngineUsageError, ExplorationError
from .header import header_of
from .live import LiveRun
from .loop import Adopted
from .reasons import RunStatus, StopReason
from .result import WaitRequest
from .resume import prepare_resume
from .runner import Limit, Runner
from .state import StateSchema

if TYPE_CHECKING:
    from .engine import Engine

_LONGEST_ID = 160
_CUT = frozenset((StopReason.budget_time, StopReason.budget_tokens, StopReason.budget_cost))
"""The ends of a child that the family's budget brought about."""
_GOES_ON = frozenset((StopReason.max_steps, StopReason.budget_steps))
"""The ends of a child whose state can still go on: it had done its number of steps."""


class Explorer:
    """Decides the branches of one live run."""

    def __init__(self, engine: "Engine", runner: Runner, environment: Environment | None) -> None:
        self.engine = engine
        self.runner = runner
        self.run = runner.run
        self.environment = environment
        runner.choose, runner.adopt = self.choose, self.adopt_recorded

    async def choose(self, state: StateSchema, decision: Decision, nest: int, again: bool) -> int | Adopted:
        """Decides one branch: gives the number of the candidate to go on with, or the state to adopt.

        `nest` counts the branches of this step that were decided before; `again` says that the step was begun by an
        earlier attempt, whose children may be there.
        """
        async with AsyncExitStack() as stack:
            exploration = _Exploration(self, state, decision, nest, again, stack)
            return await exploration.decide(self.engine.branch)

    async def adopt_recorded(self, chosen: Mapping[str, Any]) -> Adopted:
        """What an earlier attempt chose, before it could commit it."""
        trace = self.run.writer.trace().relative(chosen["run"])
        return Adopted(_reached(_from_trace(trace, self.engine).state, chosen["stop_reason"]))


@dataclass
class _End:
    """Where a child run has come to."""

    state: StateSchema
    steps: int
    candidates: tuple[Decision, ...]
    reason: StopReason
    status: RunStatus
    error: str | None
    hash: str | None
    path: str
    waiting: tuple[WaitRequest, ...] = ()


class _Cut(Exception):
    """The budget ended the exploration."""


class _Exploration:
    """One branch being decided: the `Branch` that a strategy works with."""

    def __init__(
        self,
        explorer: Explorer,
        state: StateSchema,
        decision: Decision,
        nest: int,
        again: bool,
        stack: AsyncExitStack,
    ) -> None:
        assert not isinstance(decision.candidates, int)
        self._engine = explorer.engine
        self._run = run = explorer.run
        self._task = explorer.runner.task
        self._again = again
        self._stack = stack
        self._name = f"{run.step}-{nest}" if nest else f"{run.step}"
        self.root = Node("", state, decision.candidates, run_id=run.run_id, step=run.step)
        self._nodes: dict[str, Node] = {"": self.root}
        self._hashes: dict[str, str | None] = {"": run.state_hash}
        self._paths: dict[str, str] = {"": run.path}
        self._environments: dict[str, Environment | None] = {"": explorer.environment}
        self._weights: dict[str, float] = {}
        self._live: dict[str, LiveRun] = {}
        self._cut: StopReason | None = None
        self._scope: anyio.CancelScope | None = None
        frame = Frame(run, run.step, "branch")
        self.rng = Random(int.from_bytes(frame.derive(f"branch|{self._name}")))
        self._opened = _opened_before(run) if again else frozenset[str]()

    async def decide(self, strategy: BranchStrategy) -> int | Adopted:
        """Lets the strategy choose, writes its choice and gives it."""
        run = self._run
        chosen: int | Node | None = None
        cancel_work = run.cancel_work
        try:
            with anyio.CancelScope() as self._scope:
                run.cancel_work = lambda: run.waits.in_loop(self._cut_off)
                chosen = await strategy.choose(self)
        except _Cut:
            pass
        except BudgetExceeded as error:
            run.stopping = error
            self._cut_off()
        except BaseExceptionGroup as group:
            raise _only(group) from None
        finally:
            self._scope = None
            run.cancel_work = cancel_work
        if self._cut is not None:
            chosen = await self._best_finished(strategy)
        return await self._written(strategy, chosen)

    # what strategies call

    async def grow(
        self,
        node: Node,
        candidates: Iterable[int] | None = None,
        *,
        steps: int | None = None,
        to_next_branch: bool = True,
    ) -> list[Node]:
        """See Branch.grow."""
        numbers = list(range(len(node.candidates)) if candidates is None else candidates)
        for number in numbers:
            if not 0 <= number < len(node.candidates):
                raise DecisionError(f"the node at {node.place!r} has no candidate {number}")
        places = [f"{node.place}.{number}" if node.place else str(number) for number in numbers]
        fresh = [(place, n) for place, n in zip(places, numbers, strict=True) if place not in self._nodes]
        if self._cut is not None:
            raise _Cut
        if fresh:
            await self._grow(node, fresh, Limit(steps, to_next_branch))
        return [self._nodes[place] for place in places]

    async def rate(self, node: Node, score: Score) -> float:
        """See Branch.rate."""
        if node.score is None:
            node.score = await self._scored(score, node.place, node.state)
        return node.score

    async def weigh(self, node: Node, score: Score) -> list[float]:
        """See Branch.weigh."""
        weights = []
        for number, candidate in enumerate(node.candidates):
            place = f"{node.place}.{number}" if node.place else str(number)
            self._weights[place] = await self._scored(score, place, node.state, candidate)
            weights.append(self._weights[place])
        return weights

    # children

    async def _grow(self, node: Node, fresh: list[tuple[str, int]], limit: Limit) -> None:
        run = self._run
        ids = [self._child_id(node, number) for _, number in fresh]
        if not set(ids) <= self._opened:
            run.write("branch", run.step, {"opened": {"place": node.place, "run": node.run_id, "children": ids}})
        work = iter(list(zip(fresh, ids, strict=True)))
        before = self._environments.get(node.place)

        async def worker() -> None:
            for (place, number), child_id in work:
                if self._cut is None:
                    environment = await self._fork(before)
                    end = await self._child(node, place, number, child_id, limit, environment)
                    self._take(node, place, number, child_id, end, environment)

        async with anyio.create_task_group() as group:
            for _ in range(min(len(fresh), self._engine.max_children)):
                group.start_soon(worker)
        if self._cut is not None:
            raise _Cut

    def _take(
        self, node: Node, place: str, number: int, child_id: str, end: _End, environment: Environment | None
    ) -> None:
        """Puts the child's end into the tree."""
        ended = end.reason not in _GOES_ON
        if end.reason in _CUT and end.status is RunStatus.stopped:
            self._cut = self._cut or end.reason
            return
        self._hashes[place], self._paths[place], self._environments[place] = end.hash, end.path, environment
        self._nodes[place] = Node(
            place,
            end.state if end.error is None else node.state,
            end.candidates,
            node.candidates[number],
            node,
            child_id,
            end.steps,
            end.reason if ended and end.error is None else None,
            end.error,
        )

    def _child_id(self, node: Node, number: int) -> str:
        step = self._name if node is self.root else str(node.step)
        name = f"{node.run_id}~{step}.{number}"
        if len(name) <= _LONGEST_ID:
            return name
        root = self._run.run_id.partition("~")[0]
        return f"{root}~{blake2b(name.encode(), digest_size=12).hexdigest()}"

    async def _fork(self, environment: Environment | None) -> Environment | None:
        if environment is None or self._engine.shared_env:
            return environment
        if "fork" not in environment.capabilities:
            raise EngineUsageError(
                f"the {environment.type!r} environment cannot be forked, so candidates would write over each other's "
                "files; use a scratch environment, or allow it with Engine(shared_env=True)"
            )
        forked = await environment.fork()
        self._stack.push_async_callback(forked.close)
        return forked

    async def _child(
        self, node: Node, place: str, number: int, child_id: str, limit: Limit, environment: Environment | None
    ) -> _End:
        """Runs a child as far as it shall go; one that is there goes on from where it is."""
        run = self._run
        run.waits.busy += 1
        try:
            found = self._existing(child_id) if self._again else None
            end = self._ended(found, node) if found is not None else None
            if end is None and found is None:
                end = await self._start(node, number, child_id, limit, environment)
            answers: dict[str, Any] = {}
            while end is None or end.waiting:
                if end is not None:
                    answers = await self._answers(child_id, end.waiting)
                end = await self._resume(child_id, limit, environment, answers)
            return end
        finally:
            run.waits.busy -= 1
            run.waits.changed()
            self._live.pop(child_id, None)

    async def _answers(self, child_id: str, requests: tuple[WaitRequest, ...]) -> dict[str, Any]:
        """The answers to what a child waits for, asked on its behalf by this run."""
        run, given = self._run, dict[str, Any]()

        async def ask(request: WaitRequest) -> None:
            shown = replace(request, details={**request.details, "run": child_id})
            value = await run.waits.answer(shown)
            if request.deadline is None or request.deadline > run.clock.time():
                given[request.id] = value

        run.waits.busy -= 1
        try:
            async with anyio.create_task_group() as group:
                for request in requests:
                    group.start_soon(ask, request)
        finally:
            run.waits.busy += 1
        return given

    def _child_path(self, child_id: str) -> Path | None:
        path = self._run.writer.path
        return None if path is None else branches_folder(path) / f"{child_id}{SUFFIX}"

    def _existing(self, child_id: str) -> Trace | None:
        """The child's trace, if an earlier attempt has begun one; what holds no whole record was not begun."""
        path = self._child_path(child_id)
        if path is None:
            try:
                return self._run.writer.trace().relative(child_id)
            except TraceNotFoundError:
                return None
        if not path.exists():
            return None
        found = Trace.load(path)
        if not len(found.records):
            path.unlink()
            return None
        return found

    def _ended(self, trace: Trace, node: Node) -> _End | None:
        """Where a child of an earlier attempt has come to, if it is done; it is not begun again if it failed."""
        status = trace.status
        if status not in (RunStatus.completed, RunStatus.stopped, RunStatus.failed):
            return None
        if status == RunStatus.stopped and StopReason(trace.stop_reason or "") in _CUT:
            return None
        if status == RunStatus.failed and trace.first_state is None:
            return None
        return _from_trace(trace, self._engine)

    async def _start(
        self, node: Node, number: int, child_id: str, limit: Limit, environment: Environment | None
    ) -> _End:
        run, engine = self._run, self._engine
        nest = self._name.partition("-")[1:] if node is self.root else ()
        path = f"{self._paths[node.place]}/{node.state.current_step}{''.join(nest)}.{number}"
        link = {"run": node.run_id, "step": node.step, "candidate": number, "hash": self._hashes[node.place]}
        file = self._child_path(child_id)
        with TraceWriter.create(file, durability=engine.durability, parent=run.writer) as writer:
            child = self._live_child(child_id, writer, path)
            runner = Runner(engine.module, self._task, child, engine.stop, None)
            runner.held.state = node.state
            runner.limit = limit
            runner.candidate = (node.candidates[number], number)
            budget = run.account.budget
            document = self._task.to_dict()
            child.write(
                "header", 0, header_of(child_id, engine.module, document, budget, run.seed, {**link, "path": path})
            )
            child.write("snapshot", 0, {"base": {"run": node.run_id, "step": node.step}})
            return await self._drive(runner, environment)

    async def _resume(
        self, child_id: str, limit: Limit, environment: Environment | None, answers: dict[str, Any]
    ) -> _End:
        engine = self._engine
        source = self._child_path(child_id) or self._run.writer.trace().relative(child_id)
        resumption = await prepare_resume(
            engine.module,
            source,
            self._run.account.budget,
            engine.durability,
            answers or ...,
            None,
            "fail",
            engine.clock,
            self._run.redactor,
            engine.on_wait is not None,
            child=True,
        )
        with resumption.writer as writer:
            if resumption.done is not None:
                return _from_trace(resumption.done.trace, engine)
            child = self._live_child(child_id, writer, resumption.trace.header["parent"]["path"])
            runner = Runner(engine.module, self._task, child, engine.stop, None)
            resumption.enter(child, runner)
            runner.limit = limit
            return await self._drive(runner, environment)

    def _live_child(self, child_id: str, writer: TraceWriter, path: str) -> LiveRun:
        run = self._run
        account = Account(run.account.budget, lambda what, used, limit: None, run.account)
        redactor = run.redactor.copy() if run.redactor is not None else None
        child = LiveRun(child_id, run.seed, writer, account, run.clock, redactor, (), self._engine.on_wait, path)
        child.waits.parent = run.waits
        self._live[child_id] = child
        return child

    async def _drive(self, runner: Runner, environment: Environment | None) -> _End:
        """Runs the child to its end, which is written; a cancellation is raised on."""
        child = runner.run
        Explorer(self._engine, runner, environment)
        with use_environment(environment):
            outcome = await runner.work()
            result = await finish(child, self._task, runner.held.state, outcome, None, evaluate=False)
        if outcome.raised is not None:
            raise outcome.raised
        return _end_of(runner, outcome, tuple(result.waiting))

    # the choice

    def _cut_off(self) -> None:
        """Ends the exploration for a budget: the children are ended, and the strategy is left."""
        if self._scope is None:
            return
        stopping = self._run.stopping
        self._cut = StopReason(stopping.reason) if stopping is not None else StopReason.budget_time
        self._run.stopping = None
        for child in list(self._live.values()):
            child.stop(BudgetExceeded(self._cut, f"the run that explores has used up its budget ({self._cut})"))
        self._scope.cancel()

    async def _best_finished(self, strategy: BranchStrategy) -> Node:
        """The best of the children that had finished when the budget ended the exploration."""
        finished = [n for n in sorted(self._nodes.values(), key=_order) if n is not self.root and n.lost is None]
        score = getattr(strategy, "score", None)
        for node in finished:
            if node.score is None and score is not None:
                with anyio.move_on_after(1.0):
                    try:
                        await self.rate(node, score)
                    except BudgetExceeded:
                        self._run.stopping = None
        scored = [node for node in finished if node.score is not None]
        if not scored:
            assert self._cut is not None
            self._run.stopping = BudgetExceeded(
                self._cut, f"no candidate had finished when the budget ({self._cut}) was"
            )
            raise self._run.stopping
        return max(scored, key=lambda node: node.score or 0.0)

    async def _written(self, strategy: BranchStrategy, chosen: Any) -> int | Adopted:
        """Writes the choice, and carries it out."""
        run, root = self._run, self.root
        nodes = sorted(self._nodes.values(), key=_order)
        lost = {node.place: node.lost for node in nodes if node.lost is not None}
        if isinstance(chosen, Node) and chosen is not root and self._nodes.get(chosen.place) is chosen:
            if chosen.lost is not None:
                raise DecisionError(
                    f"{type(strategy).__name__} chose candidate {chosen.place}, which failed: {chosen.lost}"
                )
            choice: dict[str, Any] = {
                "run": chosen.run_id,
                "place": chosen.place,
                "stop_reason": chosen.stop_reason,
            }
        elif type(chosen) is int and 0 <= chosen < len(root.candidates):
            choice = {"candidate": chosen}
        elif lost and (chosen is None or chosen is root):
            raise ExplorationError(lost)
        else:
            raise DecisionError(
                f"{type(strategy).__name__}.choose returned {chosen!r:.100}; it must return the number of a candidate "
                f"(0 to {len(root.candidates) - 1}) or a node that grew"
            )
        scores = {**self._weights, **{n.place: n.score for n in nodes if n.score is not None}}
        members = {"strategy": _described(strategy), "chosen": choice, "scores": scores, "lost": lost, "cut": self._cut}
        run.write("branch", run.step, members)
        if isinstance(chosen, int):
            return chosen
        environment, own = self._environments[chosen.place], self._environments[""]
        if environment is not None and own is not None and environment is not own:
            await own.adopt(environment)
        return Adopted(_reached(chosen.state, chosen.stop_reason))

    async def _scored(self, score: Score, place: str, *args: Any) -> float:
        """Calls a score in a frame of the place's own, so that what it performs is found again in any order."""
        run = self._run
        token = set_frame(Frame(run, run.step, "branch", None, f"{self._name}|{place}|".encode()))
        try:
            value: Any = score(*args)
            if inspect.isawaitable(value):
                value = await value
        finally:
            reset_frame(token)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            name = getattr(score, "__name__", type(score).__name__)
            raise DecisionError(f"the score of candidate {place} must be a finite number, {name} gave {value!r:.80}")
        return float(value)


def _order(node: Node) -> list[int]:
    """Sorts nodes by their places, whenever they were made."""
    return [int(number) for number in node.place.split(".")] if node.place else []


def _opened_before(run: LiveRun) -> frozenset[str]:
    """The children that the step under way had opened in an earlier attempt."""
    step = run.writer.trace().unfinished
    records = step.records if step is not None else ()
    return frozenset(name for r in records if r.kind == "branch" and "opened" in r for name in r["opened"]["children"])


def _reached(state: StateSchema, reason: StopReason | None) -> StateSchema:
    """The state to adopt: one that ended its run ends the run that adopts it, for the same reason."""
    return state if reason is None else with_reason(state, StopReason(reason))


def _end_of(runner: Runner, outcome: Outcome, waiting: tuple[WaitRequest, ...]) -> _End:
    run = runner.run
    error = None
    if outcome.status is RunStatus.failed:
        error = str(outcome.error) if outcome.error is not None else str(outcome.reason)
    return _End(
        runner.held.state,
        run.step,
        runner.candidates,
        outcome.reason,
        outcome.status,
        error,
        run.state_hash,
        run.path,
        waiting,
    )


def _from_trace(trace: Trace, engine: "Engine") -> _End:
    """Where a child's trace ends."""
    state = engine.module.state_class.from_dict(trace.state(-1))
    step = trace.unfinished
    decision = step.decision if step is not None else None
    several = decision.get("candidates") if decision is not None and decision["mode"] == "branch" else None
    candidates = tuple(Decision.from_dict(each) for each in several) if isinstance(several, list) else ()
    end = trace.end
    error = None
    if trace.status == RunStatus.failed:
        told = end.get("error") or {}
        error = f"{told.get('type')}: {told.get('message')}"
    states = [r.hash for r in trace.records if r.kind in ("commit", "snapshot", "resume")]
    waiting = tuple(WaitRequest.from_dict(each) for each in trace.waiting)
    return _End(
        state,
        trace.step_count,
        candidates,
        StopReason(trace.stop_reason or StopReason.waiting),
        RunStatus(trace.status),
        error,
        states[-1] if states else None,
        trace.header["parent"]["path"],
        waiting,
    )


def _described(strategy: BranchStrategy) -> dict[str, Any]:
    """A strategy as a trace tells it: its class and its settings, functions by their names."""
    form: dict[str, Any] = {"name": type(strategy).__name__}
    settings: tuple[Field[Any], ...] = fields(strategy) if is_dataclass(strategy) else ()
    for each in settings:
        value = getattr(strategy, each.name)
        plain = value is None or isinstance(value, str | int | float | bool)
        form[each.name] = value if plain else getattr(value, "__qualname__", type(value).__name__)
    return form


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception of a group, or the group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
