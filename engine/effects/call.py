"""One journaled call: an intent before it starts, an outcome when it ends, and what its caller is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NoReturn, Protocol

import orjson

from ...traces import TraceWriter, is_blob
from ..errors import CallClosed, EffectError, RunClosed, StateValueError
from ..state.model import StateModel, dump, json_value
from ..state.serialization import SHALLOW, check_depth
from .context import Frame, Span
from .json_values import json_result
from .redaction import Redactor
from .spec import EffectSpec, usage_of
from .usage import Usage


class Books(Protocol):
    """What a call needs of its run, to write down how it ended."""

    run_id: str
    writer: TraceWriter
    redactor: Redactor | None
    suspended: bool

    @property
    def is_limited(self) -> bool:
        """Whether tokens or money are limited: calls whose tokens nobody tells are counted then."""

    def write(self, kind: str, step: int, members: dict[str, Any]) -> int:
        """Appends a record; gives its number."""

    def settle(self, reserved: int, usage: Usage | None, call: "Call | None" = None) -> None:
        """Books what the call has used."""

    def error_form(self, error: BaseException) -> dict[str, Any]:
        """An exception as an outcome carries it."""

    def priced(self, usage: Usage | None) -> Usage | None:
        """What a call has used, with the price that the budget assumes where none is known."""

    def reserve(self, call: "Call", tokens: int) -> bool:
        """Reserves what the call may use."""

    def open(self, call: "Call") -> None:
        """Writes the call's intent."""

    def close(self, call: "Call") -> bool:
        """Takes a call off the open ones; False where the run has given up on it."""

    def charge(self, call: "Call", usage: Usage) -> None:
        """Counts what the running call was charged; ends the run where the budget was used up before."""


BLOB_FROM = 64 * 1024
"""Results from this many bytes on go to the folder beside the trace."""


@dataclass(frozen=True, slots=True)
class CallInfo:
    """What a running effect or tool can know of itself.

    `key` is its idempotency key, the same in every attempt; `usage` what it was charged so far, if anything.
    """

    run_id: str
    step: int
    phase: str
    name: str
    key: str
    usage: Usage | None = None


LAST = 1 << 60
"""The order of what came to be known after all that is recorded."""


@dataclass(slots=True)
class Recorded:
    """The outcome of a call as a trace has it: a result in JSON form, or an error."""

    intent: int
    outcome: int | None
    result: Any = None
    error: Mapping[str, Any] | None = None
    order: int = 0


class Call:
    """A call between its intent and its outcome. `recorded` is set when the journal already has the outcome."""

    __slots__ = (
        "charged",
        "coroutine",
        "deliver",
        "entry",
        "frame",
        "intent",
        "key",
        "match",
        "open",
        "order",
        "outcome",
        "over",
        "pending",
        "recorded",
        "reserved",
        "run",
        "spec",
        "started",
        "waited",
        "when_left",
    )

    def __init__(
        self,
        run: Books | None,
        frame: Frame,
        spec: EffectSpec,
        match: tuple[str, int | str],
        key: str,
    ) -> None:
        self.run = run
        self.frame = frame
        self.spec = spec
        self.match = match
        self.key = key
        self.recorded: Recorded | None = None
        self.intent = -1
        self.outcome: int | None = None
        self.pending: dict[str, Any] = {}
        self.charged: Usage | None = None
        self.coroutine: Any = None
        self.entry: Any = None
        """The call as the journal has it, if it does."""
        self.order: Any = None
        """The recorded outcomes that are given before this call begins: those of a step that was cut off."""
        self.deliver: Callable[[], Any] | None = None
        """Says that a recorded outcome is given now."""
        self.reserved = 0
        self.over = False
        self.open: set[Call] | None = None
        self.when_left: Callable[[], Any] | None = None
        """Ends what works on this call, when the hook or call that made it is over before."""
        self.waited: Callable[[], float] | None = None
        """How many seconds the run was blocked meanwhile, of a call that the run waits in."""
        self.started = perf_counter()

    def inner_frame(self) -> Frame:
        """The frame in which the called function runs: its own effects are journaled under this call."""
        frame, (digest, n) = self.frame, self.match
        prefix = f"{digest}.{n}|".encode()
        return Frame(frame.host, frame.step, frame.phase, self.intent, prefix, self, self)

    def info(self) -> CallInfo:
        """See CallInfo."""
        frame = self.frame
        return CallInfo(frame.host.run_id, frame.step, frame.phase, self.spec.name, self.key, self.charged)

    def take(self, recorded: Recorded, deliver: Callable[[], Any], entry: Any) -> None:
        """Gives the call an outcome that the journal has."""
        self.recorded, self.deliver, self.entry = recorded, deliver, entry
        self.intent, self.outcome = recorded.intent, recorded.outcome

    def charge(self, usage: Usage) -> None:
        """Adds to what this call has cost."""
        if usage.estimated and not (self.run is not None and self.run.is_limited):
            return
        before = self.charged or Usage()
        cost = None if before.cost is None and usage.cost is None else (before.cost or 0.0) + (usage.cost or 0.0)
        tokens_in, tokens_out = before.tokens_in + usage.tokens_in, before.tokens_out + usage.tokens_out
        charged = Usage(tokens_in, tokens_out, cost, before.estimated or usage.estimated)
        if self.run is not None:
            self.run.charge(self, charged)
        self.charged = charged

    def let_go(self) -> None:
        """Gives back what a call holds that its run is suspended in: entered again, it reserves and is charged anew."""
        if self.run is not None:
            self.run.settle(self.reserved, None, self)
            self.reserved, self.charged = 0, None

    def finish(self, value: Any) -> tuple[Any, bytes, int]:
        """Writes the outcome; gives the value as it is held, its JSON bytes, and the outcome's number.

        It is held in frozen JSON form; where it is of a state's model that was declared, as that, which is the same.
        Raises EffectError, journaled as the outcome, for a value that cannot make the trip through JSON.
        """
        run = self.run
        assert run is not None
        try:
            spec, kind = self.spec, type(value)
            usage = self.charged
            if usage is None and (kind is not str or spec.marks.usage is not None):
                usage = usage_of(spec, value)
            if spec.native is not kind and (problem := spec.mistyped(value)) is not None:
                raise StateValueError(problem)
            plain = kind is spec.model or (kind is str and spec.returns is None and value.isascii())
            held = value if plain else json_result(value, spec.returns, "the result")
            data = self._json(held) if spec.marks.brief else dump(held)
            if plain and len(data) > SHALLOW:
                check_depth(data)
        except Exception as error:  # noqa: BLE001 - a bad result, or a usage mark that raises, is this call's error
            self.fail(error)
        if run.redactor is not None:
            cleaned = run.redactor.json(data)
            if cleaned is not data:
                data = cleaned
                held = json_value(orjson.loads(data), "the result")
        result: Any = (
            orjson.Fragment(data) if len(data) < BLOB_FROM and not is_blob(held) else run.writer.put_blob(data)
        )
        return held, data, self._close({"result": result}, usage)

    def _json(self, held: Any) -> bytes:
        """Of a call that is marked as `brief`."""
        spec = self.spec
        if spec.returns is not None and type(held) is spec.model:
            return spec.returns.dump_json(held, exclude_defaults=True)
        return dump(held)

    def fail(self, error: Exception) -> NoReturn:
        """Writes the error as the outcome, and raises it as the EffectError that a replay would raise."""
        raised = self.failed(error)[0]
        raise raised from error

    def failed(self, error: Exception) -> tuple[EffectError, int]:
        """Writes the error as the outcome; gives the EffectError and the outcome's number."""
        run = self.run
        assert run is not None
        form = run.error_form(error)
        number = self._close({"error": form}, self.charged)
        return EffectError(form["type"], form["message"], form.get("data")), number

    def cancelled(self, why: str) -> None:
        """Closes the books on a call that was cancelled before it ended; what it did to the world is not known.

        A call that its run was suspended in stays open: it is entered again when the run is resumed.
        """
        if self.outcome is not None or (self.run is not None and self.run.suspended):
            return  # the run, or the hook that made it, has closed its books before
        self._close({"error": {"type": "Cancelled", "message": why}, "cancelled": True}, self.charged)

    def _close(self, members: dict[str, Any], usage: Usage | None) -> int:
        run = self.run
        assert run is not None
        if usage is not None:
            usage = run.priced(usage)
        if not run.close(self):
            if self.frame.span.over:
                raise CallClosed(f"the hook or call that has made {self.spec.name} is over; its result comes too late")
            raise RunClosed(f"run {run.run_id} has given up on {self.spec.name}; its result comes too late")
        self.over = True
        if self.open:
            leave(self)
        members = {"intent": self.intent, **members, "seconds": int((perf_counter() - self.started) * 1e6) / 1e6}
        if usage is not None:
            members["estimated" if usage.estimated else "usage"] = usage.to_dict()
        if self.waited is not None and (waited := self.waited()):
            members["waited"] = waited
        number = self.outcome = run.write("outcome", self.frame.step, members)
        if usage is not None or self.reserved:
            run.settle(self.reserved, usage, self)
        return number


def leave(span: Span) -> None:
    """Ends a hook or call: what is still open in it is given up, and whatever comes of it later is refused."""
    span.over = True
    for call in tuple(span.open or ()):
        if call.run is None or call.run.suspended:
            return
        try:
            call.cancelled("the hook or call that has made it ended before it did")
        except (CallClosed, RunClosed):
            continue  # it has ended meanwhile, in another thread
        if call.when_left is not None:
            call.when_left()


def replayed(call: Call) -> tuple[Any, bytes, int]:
    """What a recorded outcome gives: the value in JSON form, or the EffectError raised again."""
    if call.deliver is not None:
        call.deliver()
    recorded = call.recorded
    assert recorded is not None
    if recorded.error is not None:
        raise EffectError(recorded.error["type"], recorded.error["message"], recorded.error.get("data"))
    data = dump(recorded.result)
    return json_value(recorded.result, "the result"), data, recorded.outcome or -1


def typed(spec: EffectSpec, data: bytes, held: Any = None) -> Any:
    """The value that `perform` returns: of the function's declared type, from the JSON bytes of its result.

    Where it is held as such a value already, it is that.
    """
    if type(held) is spec.model:
        return held
    return orjson.loads(data) if spec.returns is None else spec.returns.validate_json(data)


def plain(held: Any, data: bytes) -> Any:
    """A value as `finish` gives it, in frozen JSON form."""
    return json_value(orjson.loads(data), "the result") if isinstance(held, StateModel) else held
