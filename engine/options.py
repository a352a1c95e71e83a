"""The options of an Engine: their types and checks."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast, get_args

from ..traces.errors import UsageError
from ..traces.file.writer import Durability
from ..traces.secret_table import without_password
from ..traces.stores import TraceStore, open_store
from ..traces.stores.store_url import is_url
from .effects.budget import RuntimeBudget
from .effects.redaction import Redactor, make_redactor
from .loop.stop_criteria import StopCriteria
from .run.clock import Clock
from .run.start.plan import Observer
from .run.start.trace_place import TraceHome
from .run.waits import OnWait
from .strategies.protocol import BranchStrategy

T = TypeVar("T")


class CommonOptions(TypedDict, total=False):
    """The options that an Engine and an Agent have in common."""

    stop: Sequence[StopCriteria]
    branch: BranchStrategy | None
    on_wait: OnWait | None
    traces: Path | str | TraceStore | None
    observers: Sequence[Observer]
    durability: Durability
    redact: bool | Redactor | Iterable[str] | Mapping[str, str]
    clock: Clock | None
    seed: int | None
    workspace: Path | str | None
    max_children: int
    shared_env: bool


class EngineOptions(CommonOptions, total=False):
    """The keyword arguments of `Engine`, whose docstring explains each."""

    budget: RuntimeBudget | None


def checked(name: str, given: T, fits: bool, wanted: str) -> T:
    """Return the value of an option that fits; otherwise raise UsageError."""
    if fits:
        return given
    if isinstance(given, type):
        shown = f"the class {given.__name__}; write {given.__name__}(...)"
    else:
        shown = without_password(f"{given!r:.80}")
    raise UsageError(f"{name} must be {wanted}, got {shown}")


def has(given: Any, *methods: str) -> bool:
    """Return whether `given` is an object, not a class, with these methods."""
    return not isinstance(given, type) and all(callable(getattr(given, each, None)) for each in methods)


def several(name: str, given: Any) -> tuple[Any, ...]:
    """Return the items of a list."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(given)
    raise UsageError(f"{name} must be a list, got {given!r:.80}; write {name}=[...]")


def stop_criteria(given: Any) -> tuple[StopCriteria, ...]:
    """Return the stop criteria."""
    wanted = "a list of stop criteria, such as MaxStepsCriteria(20)"
    return tuple(checked("stop", each, has(each, "should_stop"), wanted) for each in several("stop", given))


def observers(given: Any) -> tuple[Observer, ...]:
    """Return the functions that are called with each record."""
    wanted = "a list of functions of a Record"
    return tuple(checked("observers", each, callable(each), wanted) for each in several("observers", given))


def budget(given: RuntimeBudget | None) -> RuntimeBudget | None:
    """Return the budget of a run; a TaskBudget is refused."""
    fits = given is None or isinstance(given, RuntimeBudget)
    wanted = "a RuntimeBudget, such as RuntimeBudget(max_steps=50); a TaskBudget belongs to a Task"
    return checked("budget", given, fits, wanted)


def durability(given: Any) -> Durability:
    """Return the durability of records."""
    return cast(Durability, checked("durability", given, given in get_args(Durability), "'process', 'power' or 'none'"))


def redactor(given: Any) -> Redactor | None:
    """Return the redactor of a run; errors show no secret."""
    if isinstance(given, bool | Redactor | Mapping):
        return make_redactor(given)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        values = list(given)
        if all(isinstance(each, str) for each in values):
            return make_redactor(values)
    raise UsageError(
        f"redact must be True, False, a list of secret texts, or a mapping of names to them, got {type(given).__name__}"
    )


def home(given: Any) -> TraceHome:
    """Return the folder or store for traces."""
    if isinstance(given, str) and is_url(given):
        return open_store(given)
    if given is None or isinstance(given, Path | str):
        return None if given is None else Path(given)
    wanted = "the path of a folder, a store, or the URL of one"
    return cast(TraceStore, checked("traces", given, has(given, "create", "under"), wanted))


def workspace(given: Any) -> Path | None:
    """Return the path of a workspace, or None."""
    checked("workspace", given, given is None or isinstance(given, Path | str), "the path of a folder")
    return None if given is None else Path(given)
