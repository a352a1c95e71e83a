"""The errors of the engine; each says what came, what was expected, and what to do instead."""

from typing import Any

from ..errors import RefoldError


class StateDefinitionError(RefoldError, TypeError):
    """A state class declares something that JSON cannot carry there and back unchanged.

    `where` is the class and field, `why` the reason.
    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class StateValueError(RefoldError, ValueError):
    """A value that a state, an argument or a result cannot hold; `path` is a JSON Pointer to it."""

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.path = path

    def under(self, token: object) -> "StateValueError":
        """The same error, seen from one level further up."""
        self.path = f"/{str(token).replace('~', '~0').replace('/', '~1')}{self.path}"
        return self

    def __str__(self) -> str:
        return f"at {self.path}: {self.why}" if self.path else self.why


class CircularValueError(StateValueError):
    """A value that contains itself; `path` leads to the place where it does so for the first time.

    `beyond` counts the levels that were entered below that place; they add nothing to the path.
    """

    def __init__(self, beyond: int) -> None:
        super().__init__("the value contains itself; JSON has no cycles")
        self.beyond = beyond

    def under(self, token: object) -> "StateValueError":
        """The same error, seen from one level further up."""
        if self.beyond > 0:
            self.beyond -= 1
            return self
        return super().under(token)


class FrozenStateError(RefoldError, TypeError):
    """Somebody tried to change a value that is committed, or was made and is frozen from then on; `field` names it."""

    def __init__(self, field: str, attempt: str) -> None:
        super().__init__(
            f"{attempt} on {field}, which is frozen: it is committed, or was made just now and is no draft; reach it "
            "through the state that is passed to reduce() and change it there (state.items[-1].x = 1), or work on a "
            "copy (model_copy(update={...}) of a model; copy.deepcopy gives a plain list or dict)"
        )
        self.field = field


class DraftExpiredError(RefoldError, RuntimeError):
    """A draft was used after the reduce() that it was made for."""

    def __init__(self, field: str) -> None:
        super().__init__(
            f"a draft of {field} was used after its reduce() ended; keep the values you need, not the draft"
        )
        self.field = field


class EngineOwnedFieldError(RefoldError, AttributeError):
    """A reducer wrote a field that the engine alone writes."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field} is written by the engine alone; to end the run use set_stop(reason, final_result)")
        self.field = field


class StateMigrationError(RefoldError, ValueError):
    """A document of another schema version that no registered migrations lead to this class's version."""


class DecisionError(RefoldError, ValueError):
    """A decision or action that cannot be carried out as given."""


class ModuleDefinitionError(RefoldError, TypeError):
    """An AgentModule whose hooks or tools are not what the engine calls."""


class ReduceError(RefoldError, RuntimeError):
    """reduce() broke its contract: it returned no state, or changed the draft and returned another."""


class EffectNotAllowed(RefoldError, RuntimeError):
    """An effect was performed where none may be: inside reduce() or a stop criterion."""


class EffectError(RefoldError):
    """An effect failed; the same on replay. The original exception is `__cause__`, in the live run only.

    `error_type` is the class name of the original, `message` its text, `data` its JSON payload or None.
    """

    def __init__(self, error_type: str, message: str, data: Any = None) -> None:
        super().__init__(f"{error_type}: {message}" if message else error_type)
        self.error_type = error_type
        self.message = message
        self.data = data


class NoRunError(RefoldError, RuntimeError):
    """An effect was performed from a thread that lost its run while runs are live; `bind(fn)` carries the run along."""


class RunClosed(RefoldError, RuntimeError):
    """The run this effect belongs to has ended; nothing more is journaled or started for it."""


class CallClosed(RefoldError, RuntimeError):
    """The hook or call that this effect belongs to is over; what it has left behind journals and starts nothing more.

    A thread that a timeout has left, or a task that nobody awaited, meets it.
    """


class ChildRunError(RunClosed):
    """A child run could neither be begun nor gone on with; the run fails, and its resume takes the child up again."""


class NoThreadError(RunClosed):
    """The process can start no thread, and has none at work that could be waited for; the run fails, and is resumed."""


class BudgetExceeded(RefoldError, RuntimeError):
    """A budget stopped the run; `reason` is the StopReason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class WaitAnsweredError(RefoldError, ValueError):
    """An answer that no open request is waiting for, or that does not fit the request's schema."""


class DivergenceError(RefoldError, RuntimeError):
    """The code no longer does what its trace recorded; `divergences` says where, the first one first.

    `result` is that of the resumed run, where it was found only when the step that was cut off was run again.
    """

    result: Any = None

    def __init__(self, divergences: list[Any]) -> None:
        first = divergences[0]
        super().__init__(f"the code has changed since this trace was written: {first}")
        self.divergences = divergences


class ExplorationError(RefoldError, RuntimeError):
    """Every candidate of a branch failed; `lost` says why for each, by its place."""

    def __init__(self, lost: dict[str, str]) -> None:
        why = "; ".join(f"candidate {place}: {reason:.300}" for place, reason in lost.items())
        super().__init__(f"all candidates failed: {why}")
        self.lost = lost


class RunNotCompletedError(RefoldError, RuntimeError):
    """A run that was expected to complete did not: `result` says how it ended. Raised by `raise_for_status`."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class EngineUsageError(RefoldError, RuntimeError):
    """The engine was called in a way it cannot serve; the message says which call fits."""


def message_of(error: BaseException) -> str:
    """An exception's message as text that can be written, whatever its class makes of it."""
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception as failed:  # noqa: BLE001 - a stranger's __str__
        return f"(its message cannot be told: {type(failed).__name__})"
