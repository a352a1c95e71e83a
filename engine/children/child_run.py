"""A child run that a call of its parent has started; it has its own trace and spends from the parent's budget.

The child's id depends only on the call (`Place`), so a resumed parent finds its children again. A child that had ended
is not run again, and an unfinished child resumes from its own trace. While the child waits for an answer, its parent
waits too, and shows the child's requests as its own (`on_behalf`).
"""

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ...errors import (
    ChildRunError,
    DivergenceError,
    EngineUsageError,
    StateMigrationError,
    TraceError,
    TraceNotFoundError,
    WaitAnsweredError,
)
from ...tasks import Task
from ...traces import Trace
from ...traces.analysis.locate import branches_folder
from ...traces.file.store import SUFFIX
from ...traces.file.writer import TraceWriter
from ..concurrency.tasks import current_loop
from ..effects.budget import Account, EndedFromAbove, RuntimeBudget
from ..effects.call import Call
from ..endings import RunStatus, StopReason
from ..loop.stop_criteria import StopCriteria
from ..module import AgentModule
from ..replay.unknown_effects import Answers
from ..result import UNANSWERED, RunResult, WaitRequest
from ..run.header import header_of
from ..run.live_run import LiveRun
from ..run.resume import prepare_resume, result_of, used_so_far
from ..run.runner import Runner
from .on_behalf import answers_for
from .parent import child_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine import Engine

_OVER = (RunStatus.completed, RunStatus.stopped, RunStatus.failed)
_BUDGETS = frozenset((StopReason.budget_time, StopReason.budget_tokens, StopReason.budget_cost))


@dataclass(frozen=True, slots=True)
class Place:
    """The call that starts a child: its step, phase, match and idempotency key."""

    step: int
    phase: str
    digest: str
    n: int | str
    key: str

    @classmethod
    def of(cls, call: Call) -> "Place":
        """Return the place of a call."""
        return cls(call.frame.step, call.frame.phase, *call.match, call.key)

    def label(self, name: str, step: int | None = None) -> str:
        """Return the child's label, such as `2.helper-1f3a9c2b04`: step, name, and a digest of the place.

        The label does not depend on the parent's id, so that it is the same in a fork. `step` replaces the place's own.
        """
        place = f"{self.phase}|{self.digest}|{self.n}".encode()
        return f"{self.step if step is None else step}.{name}-{blake2b(place, digest_size=5).hexdigest()}"


class InnerRun:
    """One child run of `run`; `awaited_by` holds the calls of `run` that wait for the child.

    Raises EngineUsageError outside of the event loop of `run`.
    """

    def __init__(
        self,
        run: LiveRun,
        place: Place,
        module: AgentModule[Any],
        task: Task,
        name: str,
        budget: RuntimeBudget,
        stop: Sequence[StopCriteria] = (),
    ) -> None:
        assert run.engine is not None
        if current_loop() is not run.loop:
            raise EngineUsageError(
                "a child run belongs on the event loop of its run; make the tool async, and await the child in it"
            )
        self.run = run
        self.place = place
        self.name = name
        self.task = task
        self.budget = budget
        self.engine = _engine_for(run.engine, module, budget, stop, run.seed)
        self.label = place.label(name)
        self.run_id = child_id(run.run_id, self.label)
        self.awaited_by: list[Call] | None = []
        self.begun = anyio.Event()
        """Set once the child has a trace."""
        self._state_hash = run.state_hash

    async def bring(self, call: Call) -> RunResult:
        """Run the child to its end for a waiting call. Raises ChildRunError if it cannot be started or resumed."""
        self.awaited_by = [call]
        with told_as_its_own(self.run_id):
            result = await self.advance()
            while result.waiting:
                result = await self.go_on(await self.answers(result.waiting))
            return result

    async def advance(self) -> RunResult:
        """Run the child until it ends or waits; a child with a trace is resumed, or not run again if it has ended."""
        with self._busy():
            trace = self._begun()
            if trace is None:
                return await self._begin()
            self.begun.set()
            return self._ended(trace) or await self._go_on({})

    async def go_on(self, answers: dict[str, Any]) -> RunResult:
        """Resume a waiting child with `answers`, until it ends or waits again."""
        with self._busy():
            return await self._go_on(answers)

    @contextmanager
    def _busy(self) -> "Iterator[None]":
        waits = self.run.waits
        waits.busy += 1
        try:
            yield
        finally:
            waits.busy -= 1
            waits.changed()

    async def answers(self, requests: Sequence[WaitRequest]) -> dict[str, Any]:
        """Return answers to the child's requests, asked on its behalf; ask again if the child refuses an answer."""
        refused: dict[str, Any] = {}
        for again in count():
            ids = {each.id if not again else _again(each.id, again): each.id for each in requests}
            asked = [replace(each, id=name) for name, each in zip(ids, requests, strict=True)]
            with self._busy():
                shown = {"run": self.run_id, "child": self.name, **refused}
                given = await answers_for(self.run, asked, shown, self.awaited_by or ())
            answers = {ids[name]: answer for name, answer in given.items()}
            if (problem := self._problem(answers)) is None:
                return answers
            refused = {"refused": problem}
        raise AssertionError("it is asked for ever")

    def _problem(self, answers: dict[str, Any]) -> str | None:
        """Return why the child refuses these answers, or None; only the child's own tools can check a result."""
        trace = self.run.writer.trace().relative(self.run_id)
        redactor, module, now = self.run.redactor, self.engine.module, self.engine.clock.time()
        try:
            Answers(trace, lambda kind, members: None, redactor, module, now).take(answers or UNANSWERED, None)
        except WaitAnsweredError as error:
            return str(error)
        return None

    # the trace of an earlier attempt

    @property
    def path(self) -> Path | None:
        """The file of the child's trace; None if the parent's trace is in memory."""
        path = self.run.writer.path
        return None if path is None else branches_folder(path) / f"{self.run_id}{SUFFIX}"

    def _begun(self) -> Trace | None:
        """Return the child's trace, if an earlier attempt has started one with at least one whole record.

        A crash may have lost the end of the parent's trace, so that a child's file exists without a record of its
        start. Such a file belongs to this child if it has the same call and task; otherwise it is renamed.
        """
        path = self.path
        if path is not None and not path.exists():
            return None
        try:
            trace = self.run.writer.trace().relative(self.run_id)
        except TraceNotFoundError:
            return None
        if path is not None and not len(trace.records):
            path.unlink()
            return None
        if self.run_id not in self.run.begun_children:
            if path is not None and not self._is_own(trace):
                free = next(n for n in count(1) if not path.with_name(f"{path.name}.{n}").exists())
                path.rename(path.with_name(f"{path.name}.{free}"))
                return None
            self.run.account.add(used_so_far(trace))
        return trace

    def _is_own(self, trace: Trace) -> bool:
        link = trace.header.get("parent") or {}
        return link.get("call") == self.place.key and trace.header["task"] == self.task.to_dict()

    def _ended(self, trace: Trace) -> RunResult | None:
        """Return the child's result if it has ended; None if a budget has stopped it, which may be larger now."""
        if trace.status not in _OVER:
            return None
        if trace.status == RunStatus.stopped and trace.stop_reason in _BUDGETS:
            return None
        return result_of(trace, self.engine.module)

    # a child at work

    async def _begin(self) -> RunResult:
        run, engine, place = self.run, self.engine, self.place
        path = self.path
        link: dict[str, Any] = {"run": run.run_id, "step": place.step, "call": place.key, "name": self.name}
        link |= {"hash": self._state_hash, "path": self.fork_path}
        with TraceWriter.create(path, durability=engine.durability, parent=run.writer) as writer:
            child = self._live(writer)
            if run.reuse is not None and not run.reuse.live:
                model = self._model(run.reuse.run_id, run.reuse.at + place.step)
                child.reuse = run.reuse.child(model, run.reuse.answers(run.step), child.tell_live)
                link["reuse_effects"] = child.reuse.link(path)
            task = self.task.to_dict()
            child.write("header", 0, header_of(self.run_id, engine.module, task, self.budget, run.seed, link))
            self.begun.set()
            return await self._driven(child, self._runner(child), fresh=True)

    @property
    def fork_path(self) -> str:
        """The child's fork path, on which its randomness depends beside the seed."""
        place = self.place
        return f"{self.run.path}/{self.run.first_step + place.step}.{place.phase}.{place.digest}.{place.n}"

    def _model(self, run_id: str, step: int) -> str:
        """Return the id of the child that the same call has started in a fork's source."""
        return child_id(run_id, self.place.label(self.name, step))

    async def _go_on(self, answers: dict[str, Any]) -> RunResult:
        engine, run = self.engine, self.run
        resumption = await prepare_resume(
            engine.module,
            self.path or run.writer.trace().relative(self.run_id),
            self.budget,
            engine.durability,
            answers or UNANSWERED,
            None,
            run.on_divergence,
            engine.clock,
            run.redactor,
            engine.on_wait,
            child=True,
        )
        with resumption.writer as writer:
            if resumption.done is not None:
                return resumption.done
            child = self._live(writer)
            runner = self._runner(child)
            resumption.enter(child, runner)
            return await self._driven(child, runner, fresh=False)

    def _live(self, writer: TraceWriter) -> LiveRun:
        run, engine = self.run, self.engine
        account = Account(self.budget, lambda what, used, limit: child.warn_budget(what, used, limit), run.account)
        redactor = run.redactor.copy() if run.redactor is not None else None
        child = LiveRun(self.run_id, run.seed, writer, account, engine.clock, redactor, (), engine.on_wait)
        child.path, child.engine = self.fork_path, engine
        child.waits.parent, child.waits.awaited_by = run.waits, self.awaited_by
        return child

    def _runner(self, child: LiveRun) -> Runner:
        engine = self.engine
        return Runner(engine.module, self.task, child, engine.stop, self.budget.max_runtime_seconds)

    async def _driven(self, child: LiveRun, runner: Runner, *, fresh: bool) -> RunResult:
        self.run.children.add(child)
        try:
            result = await self.engine._drive(runner, self.task, fresh=fresh)
        finally:
            self.run.children.discard(child)
        if child.writer.failed is not None:
            raise child.writer.failed  # a full disk is no answer
        if isinstance(child.stopping, EndedFromAbove):
            raise child.stopping
        return result


@contextmanager
def told_as_its_own(run_id: str) -> "Iterator[None]":
    """Turn an error that keeps a child from running into ChildRunError, which fails the run.

    As an ordinary error it would become the result of the tool that has started the child.
    """
    try:
        yield
    except DivergenceError as error:
        told = DivergenceError([replace(each, run=each.run or run_id) for each in error.divergences])
        raise ChildRunError(f"child run {run_id} cannot be gone on with: {told}") from error
    except (TraceError, EngineUsageError, StateMigrationError) as error:
        raise ChildRunError(f"child run {run_id} cannot be gone on with: {error}") from error


def _again(request: str, number: int) -> str:
    return blake2b(f"{request}|{number}".encode(), digest_size=8).hexdigest()


def _engine_for(
    own: "Engine", module: AgentModule[Any], budget: RuntimeBudget, stop: Sequence[StopCriteria], seed: int
) -> "Engine":
    """Return an engine for a child: its parent's settings with the child's module, budget and stop criteria."""
    made: Engine = AgentModule.make_engine(
        module,
        budget=budget,
        stop=stop,
        on_wait=own.on_wait,
        durability=own.durability,
        redact=False,
        clock=own.clock,
        seed=seed,
        workspace=own.workspace,
        max_children=own.max_children,
        shared_env=own.shared_env,
    )
    return made
