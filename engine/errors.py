"""Errors of the engine: definitions, calls, states, effects and runs."""

from collections.abc import Sequence
from typing import Any

from ..traces.errors import DefinitionError, ExternalError, RunAbortedError, StateError, TaskError, UsageError


class StateDefinitionError(DefinitionError, TypeError):
    """A state class declares something that JSON cannot restore unchanged.

    `where` is the class and field, `why` the reason.
    """

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class StateValueError(StateError, ValueError):
    """A value that a state, argument or result cannot hold.

    `path` is a JSON Pointer to it.
    """

    def __init__(self, why: str, path: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.path = path

    def under(self, token: object) -> "StateValueError":
        """Return this error with a key, index or field before its path."""
        self.path = f"/{str(token).replace('~', '~0').replace('/', '~1')}{self.path}"
        return self

    def __str__(self) -> str:
        return f"at {self.path}: {self.why}" if self.path else self.why


class CircularValueError(StateValueError):
    """A value contains itself.

    `path` leads to the first place where it does. `beyond` is the number of levels entered below this place; these
    levels add nothing to the path.
    """

    def __init__(self, beyond: int) -> None:
        super().__init__("the value contains itself; JSON has no cycles")
        self.beyond = beyond

    def under(self, token: object) -> "StateValueError":
        """Return this error with `token` before its path.

        Levels beyond the place of the cycle are only counted down.
        """
        if self.beyond > 0:
            self.beyond -= 1
            return self
        return super().under(token)


class FrozenStateError(StateError, TypeError):
    """An attempt to change a frozen value, named by `field`.

    The value is committed, or new and not a draft.
    """

    def __init__(self, field: str, attempt: str) -> None:
        super().__init__(
            f"{attempt} on {field}, which is frozen: only reduce() changes a state, through the state that it is given "
            "(an item that it has just made, too: state.items[-1].x = 1 once it is there); elsewhere, change a copy "
            "(model_copy(update={...}) of a model; copy.deepcopy gives a plain list or dict)"
        )
        self.field = field


class DraftExpiredError(StateError, RuntimeError):
    """A draft, named by `field`, was used after its reduce() had ended."""

    def __init__(self, field: str) -> None:
        super().__init__(
            f"a draft of {field} was used after its reduce() ended; keep the values you need, not the draft"
        )
        self.field = field


class EngineOwnedFieldError(StateError, AttributeError):
    """A hook or an edit wrote one of the engine's own fields."""

    def __init__(self, field: str, remedy: str = "to end the run use set_stop(reason, final_result)") -> None:
        super().__init__(f"{field} is written by the engine alone; {remedy}")
        self.field = field


class StateMigrationError(StateError, ValueError):
    """No registered migrations lead to a state's current schema version."""


class DecisionError(UsageError, ValueError):
    """A decision or action that cannot be carried out as given."""


class ModuleDefinitionError(DefinitionError, TypeError):
    """An AgentModule has hooks or tools that the engine cannot call."""


class ReduceError(StateError, RuntimeError):
    """reduce() broke its contract.

    It returned a value that is not a state, or both changed the draft and returned another state.
    """


class EffectNotAllowedError(UsageError, RuntimeError):
    """An effect was performed inside reduce() or a stop criterion."""


class EffectError(ExternalError):
    """An effect failed; a replay raises the same error.

    `error_type` is the class name of the original exception, `message` its text, `data` its JSON payload or None.
    `kinds` has the names of the class's bases, of its errno and its HTTP status. The original exception is the
    `__cause__`, in the live run only.
    """

    def __init__(self, error_type: str, message: str, data: Any = None, kinds: Sequence[str] = ()) -> None:
        super().__init__(f"{error_type}: {message}" if message else error_type)
        self.error_type = error_type
        self.message = message
        self.data = data
        self.kinds = tuple(kinds)


class NoRunError(UsageError, RuntimeError):
    """An effect in a thread without a run, while runs are live.

    `bind(fn)` gives the thread its run.
    """


class RunClosedError(RunAbortedError, RuntimeError):
    """The run of this effect has ended.

    Nothing more is recorded or started for it.
    """


class CallClosedError(UsageError, RuntimeError):
    """The hook or call of this effect has ended.

    Nothing more is recorded or started for it. Raised in a thread that a timeout has abandoned, and in a task that was
    never awaited.
    """


class ChildRunError(RunAbortedError, RuntimeError):
    """A child run could neither start nor resume.

    Its parent fails; resuming the parent tries the child again.
    """


class RecordedValueError(RunAbortedError, RuntimeError):
    """A recorded value that the run needs cannot be read.

    Its blob is missing or corrupt. The run fails, and can be resumed once the blob is in place.
    """


class NoThreadError(RunAbortedError, RuntimeError):
    """The process can start no thread, and none will become free.

    The run fails, and can be resumed.
    """


class BudgetExceededError(RunAbortedError, RuntimeError):
    """The budget stopped the run; `reason` is the StopReason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class WaitAnsweredError(UsageError, ValueError):
    """An answer has no open request, or does not fit its schema."""


class ExplorationError(RunAbortedError, RuntimeError):
    """Every candidate of a branch failed.

    `lost` maps each candidate's place in the tree to the reason.
    """

    def __init__(self, lost: dict[str, str]) -> None:
        why = "; ".join(f"candidate {place}: {reason:.300}" for place, reason in lost.items())
        super().__init__(f"all candidates failed: {why}")
        self.lost = lost


class RunNotCompletedError(TaskError, RuntimeError):
    """A run has not completed; `result` says how it ended.

    `raise_for_status` raises this error.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class EngineUsageError(UsageError, RuntimeError):
    """A wrong call of the engine; the message names the right one."""


class ArgumentError(UsageError, TypeError):
    """The arguments of a tool call do not fit the function.

    `argument` is the name of the first invalid one.
    """

    def __init__(self, message: str, argument: str) -> None:
        super().__init__(message)
        self.argument = argument
