"""The answers that a run waits for: who is asked, how long, and when the run is suspended to be taken up again later.

A request is written down (`wait`) before anybody is asked, its answer (`input`) before anybody sees it. The run is
*blocked* while nothing of it can go on but an answer comes: that time does not count. It is *suspended* when it is
blocked and nobody in this process will give an answer.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from .answers import schema_problem
from .context import reset_frame, set_frame
from .errors import StateValueError
from .result import WaitRequest
from .state import json_value
from .workers import in_thread

if TYPE_CHECKING:
    from .calls import Call
    from .live import LiveRun

OnWait = Callable[[WaitRequest], Any]
"""Answers a request, or gives `...` to leave it open; sync (then in a worker thread) or async."""

_SETTLING_ROUNDS = 20
"""How many rounds of the event loop a blocked run is given to ask for more before it is suspended."""


class _Asking:
    """One request that is being waited for; `parked` once nobody in this process will answer it."""

    def __init__(self, call: "Call | None") -> None:
        self.call = call
        self.parked = False


class Waits:
    """All the waiting of one run. Called on the loop; `changed` also from threads."""

    def __init__(self, run: "LiveRun", on_wait: OnWait | None) -> None:
        self._run = run
        self._on_wait = on_wait
        self._asking: list[_Asking] = []
        self._version = 0
        self._blocked_at: float | None = None
        self._blocked_before = 0.0
        self._told = 0.0
        self.answers: dict[str, Any] = {}
        """What was answered in the step under way, by request."""
        self.shown: dict[str, WaitRequest] = {}
        """The requests of the step under way that the trace has."""
        self.busy = 0
        """How many child runs are at work."""
        self.in_loop: Callable[[Callable[[], Any]], Any] = lambda call: call()
        self.suspend: Callable[[], Any] = lambda: None
        self.unblocked: Callable[[], Any] = lambda: None

    @property
    def blocked_seconds(self) -> float:
        """How long this attempt has been blocked."""
        now = self._run.clock.monotonic()
        return self._blocked_before + (now - self._blocked_at if self._blocked_at is not None else 0.0)

    @property
    def is_blocked(self) -> bool:
        """Whether nothing goes on until an answer comes."""
        return self._blocked_at is not None

    def open_requests(self) -> list[WaitRequest]:
        """The requests without an answer, in the order in which they were made."""
        return [request for name, request in self.shown.items() if name not in self.answers]

    def restore(self, requests: Iterable[WaitRequest], answers: Mapping[str, Any]) -> None:
        """Takes over what the trace has of the step under way."""
        self.shown = {request.id: request for request in requests}
        self.answers = dict(answers)

    def committed(self) -> None:
        """Forgets the requests of a step that is written."""
        if self.shown:
            self.shown, self.answers = {}, {}

    async def answer(self, request: WaitRequest, call: "Call | None" = None, *, timer: bool = False) -> Any:
        """The answer to a request, None once its time has passed; written down before it is given.

        `call` is the ask that waits, if it is one. A `timer` is waited for in this process, whoever else could answer.
        """
        if request.id in self.answers:
            return self.answers[request.id]
        shown = self.shown.get(request.id)
        if shown is None:
            self._run.write("wait", self._run.step, {"requests": [request.to_dict()]})
            shown = self.shown[request.id] = request
        asking = _Asking(call)
        self._asking.append(asking)
        self._recheck()
        try:
            return await self._answered(shown, asking, timer)
        finally:
            self._asking.remove(asking)
            self._recheck()

    async def _answered(self, request: WaitRequest, asking: _Asking, timer: bool) -> Any:
        left = None if request.deadline is None else max(0.0, request.deadline - self._run.clock.time())
        if left != 0.0:
            with anyio.move_on_after(left):
                if self._on_wait is not None:
                    value = await self._handled(self._on_wait, request)
                    if value is not ... and (taken := self._accept(request, value)):
                        return taken[0]
                asking.parked = not timer
                self._recheck()
                await anyio.sleep_forever()
        self._write_answer(request, None, {"expired": [request.id]})
        return None

    async def _handled(self, on_wait: OnWait, request: WaitRequest) -> Any:
        """What the handler says; it is no part of the run, so it has no frame to perform effects in."""
        token = set_frame(None)
        try:
            if inspect.iscoroutinefunction(on_wait) or inspect.iscoroutinefunction(getattr(on_wait, "__call__", None)):  # noqa: B004
                return await on_wait(request)
            value = await in_thread(lambda: on_wait(request), {})
            return await value if inspect.isawaitable(value) else value
        finally:
            reset_frame(token)

    def _accept(self, request: WaitRequest, value: Any) -> tuple[Any] | None:
        """Writes an answer that fits, and gives it; writes why another is refused, and gives None."""
        try:
            exact = json_value(value, "the answer")
            problem = schema_problem(request.schema, exact)
        except StateValueError as error:
            problem = f"it cannot be written as JSON: {error}"
        if problem is not None:
            data = {"request": request.id, "problem": problem}
            self._run.write("event", self._run.step, {"name": "answer_refused", "data": data})
            return None
        if self._run.redactor is not None:
            exact = json_value(self._run.redactor.value(exact), "the answer")
        self._write_answer(request, exact, {})
        return (exact,)

    def _write_answer(self, request: WaitRequest, value: Any, members: dict[str, Any]) -> None:
        waited = self.blocked_seconds
        members = {"answers": {request.id: value}, **members, "waited": round(waited - self._told, 6)}
        self._run.write("input", self._run.step, members)
        self._told = waited
        self.answers[request.id] = value

    # blocked, and suspended

    def changed(self) -> None:
        """Says that a call was opened or closed, or a child began or ended; from any thread."""
        if self._asking:
            self.in_loop(self._recheck)

    def _recheck(self) -> None:
        self._version += 1
        now = self._run.clock.monotonic()
        blocked = self._is_blocked()
        if blocked and self._blocked_at is None:
            self._blocked_at = now
        elif not blocked and self._blocked_at is not None:
            self._blocked_before += now - self._blocked_at
            self._blocked_at = None
            self.unblocked()
        if blocked and all(asking.parked for asking in self._asking):
            self._settle(self._version, _SETTLING_ROUNDS)

    def _is_blocked(self) -> bool:
        if not self._asking or self.busy:
            return False
        waiting = set[int]()
        for asking in self._asking:
            call = asking.call
            while call is not None:
                waiting.add(id(call))
                call = call.frame.call
        return all(id(call) in waiting for call in list(self._run.open_calls.values()))

    def _settle(self, version: int, rounds: int) -> None:
        if version != self._version:
            return
        if rounds:
            self.in_loop(lambda: self._settle(version, rounds - 1))
        else:
            self.suspend()
