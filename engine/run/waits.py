"""The answers that a run waits for: who is asked, how long, and when the run is suspended to be taken up again later.

A request is written down (`wait`) before anybody is asked, its answer (`input`) before anybody sees it. The run is
*blocked* while nothing of it can go on but an answer comes: that time does not count. It is *suspended* when it is
blocked and nobody in this process will give an answer.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from ..concurrency.threads import in_thread
from ..effects.context import OUTSIDE
from ..effects.json_values import json_result
from ..errors import RunClosed, StateValueError
from ..loop.json_schema import schema_problem
from ..purity import reset_frame, set_frame
from ..result import WaitRequest
from ..state.model import json_value

if TYPE_CHECKING:
    from ..effects.call import Call
    from ..effects.redaction import Redactor
    from .live_run import LiveRun

OnWait = Callable[[WaitRequest], Any]
"""Answers a request, or gives `...` to leave it open; sync (then in a worker thread) or async.

What it raises, and an answer that does not fit, leave the request open too; an event and a warning tell why.
"""
Refusal = Callable[[Any], str | None]
"""Says why an answer that fits the schema is refused nevertheless; None where it is not."""
log = logging.getLogger("refold")

_SETTLING_ROUNDS = 20
"""How many rounds of the event loop a blocked run is given to ask for more before it is suspended."""


class _Asking:
    """One request that is being waited for; `parked` once nobody in this process will answer it."""

    def __init__(self, calls: "Sequence[Call]") -> None:
        self.calls = calls
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
        """How many child runs are at work, blocked ones included."""
        self.parent: Waits | None = None
        """The waits of the run that this one belongs to."""
        self.awaited_by: list[Call] | None = None
        """The parent's calls that wait for this run; None where all of the parent does."""
        self._blocked_children: set[Waits] = set()
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

    def waited(self) -> float:
        """How many seconds it was blocked since this was asked last, for the trace to tell."""
        before, self._told = self._told, self.blocked_seconds
        return round(self._told - before, 6)

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

    async def answer(
        self,
        request: WaitRequest,
        call: "Call | None" = None,
        *,
        timer: bool = False,
        first: OnWait | None = None,
        handled: bool = True,
        calls: "Sequence[Call]" = (),
        refusal: Refusal | None = None,
    ) -> Any:
        """The answer to a request, None once its time has passed; written down before it is given.

        `call` is the ask that waits, if it is one; `calls` are those that wait for a child whose request it is. `first`
        is asked before the run's own handler; nobody is, where it is not to be `handled`. A `timer` is waited for in
        this process, whoever else could answer. `refusal` says what else is wrong with a handler's answer.
        """
        if request.id in self.answers:
            return self.answers[request.id]
        if self._run.closed:
            raise RunClosed(f"run {self._run.run_id} has ended; nobody is asked {request.prompt!r}")
        shown = self.shown.get(request.id)
        if shown is None:
            shown = self._without_secrets(request)
            self._run.write("wait", self._run.step, {"requests": [shown.to_dict()]})
            self.shown[request.id] = shown
        asking = _Asking(calls if call is None else (call,))
        self._asking.append(asking)
        self._recheck()
        try:
            return await self._answered(shown, asking, timer, (first, self._on_wait) if handled else (), refusal)
        finally:
            self._asking.remove(asking)
            self._recheck()

    def give(self, request: WaitRequest, value: Any) -> Any:
        """Writes a request with an answer that is known, and gives that."""
        self._run.write("wait", self._run.step, {"requests": [request.to_dict()]})
        self.shown[request.id] = request
        self._write_answer(request, json_value(value, "the answer"), {"reused": True})
        return self.answers[request.id]

    async def _answered(
        self,
        request: WaitRequest,
        asking: _Asking,
        timer: bool,
        handlers: tuple[OnWait | None, ...],
        refusal: Refusal | None,
    ) -> Any:
        left = None if request.deadline is None else max(0.0, request.deadline - self._run.clock.time())
        if left != 0.0:
            with anyio.move_on_after(left):
                for handler in handlers:
                    if handler is not None and (taken := await self._handled(handler, request, refusal)):
                        return taken[0]
                asking.parked = not timer
                self._recheck()
                await anyio.sleep_forever()
        self._write_answer(request, None, {"expired": [request.id]})
        return None

    async def _handled(self, on_wait: OnWait, request: WaitRequest, refusal: Refusal | None) -> tuple[Any] | None:
        """The answer that the handler gives, written down; None where it gives none that fits."""
        try:
            value = await called(on_wait, request)
        except Exception as error:  # noqa: BLE001 - a stranger's handler must not end the run; it is reported
            form = self._run.error_form(error)
            self._left_open(request, "on_wait_failed", f"{form['type']}: {form['message']}")
            return None
        return None if value is ... else self._accept(request, value, refusal)

    def _accept(self, request: WaitRequest, value: Any, refusal: Refusal | None) -> tuple[Any] | None:
        redactor = self._run.redactor
        try:
            exact = json_result(value, None, "the answer")
            if redactor is not None:
                exact = json_value(redactor.value(exact), "the answer")
            problem = schema_problem(request.schema, exact) or (refusal(exact) if refusal is not None else None)
        except StateValueError as error:
            problem = f"it cannot be written as JSON: {error}"
        if problem is not None:
            self._left_open(request, "answer_refused", problem)
            return None
        self._write_answer(request, exact, {})
        return (exact,)

    def _left_open(self, request: WaitRequest, event: str, problem: str) -> None:
        data = left_open(request, event, problem, self._run.redactor)
        self._run.write("event", self._run.step, {"name": event, "data": data})

    def _without_secrets(self, request: WaitRequest) -> WaitRequest:
        redactor = self._run.redactor
        return request if redactor is None else WaitRequest.from_dict(redactor.value(request.to_dict()))

    def _write_answer(self, request: WaitRequest, value: Any, members: dict[str, Any]) -> None:
        members = {"answers": {request.id: value}, **members, "waited": self.waited()}
        self._run.write("input", self._run.step, members)
        self.answers[request.id] = value

    # blocked, and suspended

    def changed(self) -> None:
        """Says that a call was opened or closed, or a child began or ended; from any thread."""
        if self._asking or self._blocked_children:
            now = self._run.clock.monotonic()
            self.in_loop(lambda: self._recheck(now))

    def _recheck(self, since: float | None = None) -> None:
        """Looks anew whether the run is blocked; `since` is when that may have changed."""
        self._version += 1
        now = self._run.clock.monotonic() if since is None else since
        blocked = self._is_blocked()
        if blocked and self._blocked_at is None:
            self._blocked_at = now
            self._tell_parent(blocked=True)
        elif not blocked and self._blocked_at is not None:
            self._blocked_before += now - self._blocked_at
            self._blocked_at = None
            self._tell_parent(blocked=False)
            self.unblocked()
        if blocked and self._asking and not self._blocked_children and all(asking.parked for asking in self._asking):
            self._settle(self._version, _SETTLING_ROUNDS)

    def _tell_parent(self, *, blocked: bool) -> None:
        if self.parent is not None:
            change = self.parent._blocked_children.add if blocked else self.parent._blocked_children.discard
            change(self)
            self.parent._recheck()

    def _is_blocked(self) -> bool:
        children = self._blocked_children
        if self.busy > len(children):
            return False
        if not self._asking and all(child.awaited_by == [] for child in children):
            return False
        waiting = set[int]()
        calls: list[Call | None] = [call for asking in self._asking for call in asking.calls]
        for child in children:
            calls += child.awaited_by or ()
        for call in calls:
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
            for cancel in tuple(self._run.background):  # else threads that nobody leaves behind would wait on
                cancel()


def left_open(request: WaitRequest, event: str, problem: str, redactor: "Redactor | None") -> dict[str, Any]:
    """Warns that a handler has left a request open; gives the data of the event that tells why."""
    data = {"request": request.id, "problem": problem}
    if redactor is not None:
        data = redactor.value(data)
    log.warning("%s: %s; request %s (%r) stays open", event, data["problem"], request.id, request.prompt)
    return data


async def called(on_wait: OnWait, request: WaitRequest) -> Any:
    """What the handler says; it is no part of the run, so that effects in it are not journaled."""
    token = set_frame(OUTSIDE)
    try:
        if inspect.iscoroutinefunction(on_wait) or inspect.iscoroutinefunction(getattr(on_wait, "__call__", None)):  # noqa: B004
            return await on_wait(request)
        value = await in_thread(lambda: on_wait(request), {})
        return await value if inspect.isawaitable(value) else value
    finally:
        reset_frame(token)
