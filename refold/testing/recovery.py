"""Runs a module as after a crash: each time by another engine with another copy of it, and answers what it asks."""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from ..engine import AgentModule, Engine, MakesModule, RunResult, WaitRequest, module_of
from ..tasks import Task
from ..traces import Trace
from .copies import Copies

Answers = Callable[[WaitRequest], Any] | Mapping[str, Any]
"""What is said to a request: a function of it, or answers by prompt; `...` leaves it open."""


class Recovery:
    """Engines for one module and one store, and somebody who answers what their runs wait for."""

    def __init__(
        self,
        make: Callable[[], AgentModule[Any]],
        copies: Copies,
        answers: Answers | None,
        fates: Callable[[WaitRequest], Any] | None,
        options: dict[str, Any],
    ) -> None:
        self.copies = copies
        self.options = options
        self.most_rounds = 1000
        """How often a run is answered before that is given up."""
        self._make = make
        self._answers = answers
        self._fates = fates

    @property
    def time_stands_still(self) -> bool:
        """Whether no deadline passes by itself."""
        return self.options.get("clock") is not None

    def engine(self, **options: Any) -> Engine:
        """An engine with a module of its own."""
        return Engine(self._make(), traces=self.copies.folder, **self.options, **options)

    async def undisturbed(self, task: Task | str) -> RunResult:
        """A run that is answered at once."""
        return await self.engine(on_wait=self._answer).arun(task)

    async def resumed(self, trace: Trace) -> RunResult:
        """Resumes a run, and answers it, until it has ended."""
        return await self.to_the_end(await self.engine().aresume(trace))

    async def to_the_end(self, result: RunResult) -> RunResult:
        """Answers a run until it has ended."""
        for _ in range(self.most_rounds):
            if not result.waiting:
                return result
            result = await self.go_on(result)
        asked = ", ".join(repr(request.prompt) for request in result.waiting)
        raise AssertionError(f"the run asks on and on, now {asked}; must what it asks be in the state?")

    async def go_on(self, result: RunResult) -> RunResult:
        """Answers what a run waits for, or lets the time to answer pass; by another engine."""
        given = self.given(result.waiting)
        if given:
            return await self.engine().aresume(result.trace, given)
        deadlines = [request.deadline for request in result.waiting if request.deadline is not None]
        if not deadlines:
            asked = ", ".join(repr(request.prompt) for request in result.waiting)
            raise AssertionError(f"the run waits, and answers= says nothing to {asked}")
        await self._let_pass(min(deadlines))
        return await self.engine().aresume(result.trace)

    def given(self, requests: Sequence[WaitRequest]) -> dict[str, Any]:
        """The answers to requests, without those that are left open."""
        given: dict[str, Any] = {}
        for request in requests:
            if request.kind == "unknown_effect":
                given[request.id] = {"retry": True} if self._fates is None else self._fates(request)
            elif (answer := self._answer(request)) is not ...:
                given[request.id] = answer
        return given

    def _answer(self, request: WaitRequest) -> Any:
        given = self._answers
        if given is None:
            return ...
        return given.get(request.prompt or "", ...) if isinstance(given, Mapping) else given(request)

    async def _let_pass(self, deadline: float) -> None:
        clock = self.options.get("clock")
        if clock is None:
            await anyio.sleep(max(0.0, deadline - time.time()) + 0.001)
        else:
            clock.advance(max(0.0, deadline - clock.time()))


def maker(module: AgentModule[Any] | MakesModule | Callable[[], AgentModule[Any]]) -> Callable[[], AgentModule[Any]]:
    """What makes a module for each engine: the function or Agent given, or copies of the module, or that itself."""
    if not isinstance(module, AgentModule):
        return module if callable(module) else lambda: module_of(module)
    given = module
    try:
        pristine = copy.deepcopy(given)
    except Exception:  # noqa: BLE001 - whatever keeps it from being copied, such as a lock or an open client
        return lambda: given
    return lambda: copy.deepcopy(pristine)
