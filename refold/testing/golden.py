"""A recorded trace as a test of today's code."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..engine import AgentModule, Divergence, Engine, MakesModule
from ..engine.replay.divergence import shortened
from ..errors import DivergenceError
from ..traces import Trace

_SHOWN = 5

ModuleMaker = Callable[[str, Trace], AgentModule[Any] | MakesModule | None]
"""A function from import path and trace to a module or Agent; None means the class, called without arguments."""


class TraceTestError(DivergenceError, AssertionError):
    """A trace from which today's code diverges, or that cannot be tested.

    The message is the report. `divergences` is empty if the trace could not be tested at all.
    """

    def __init__(self, message: str, divergences: list[Divergence] | None = None) -> None:
        super().__init__(divergences or [], message)


def check_golden(path: Path | str, make: ModuleMaker | None = None) -> None:
    """Check a trace file, and verify it with its module.

    The module is the one that `make` returns, or else the one that the header names.

    Raises:
        TraceTestError: the code diverges from the trace, or the module cannot be made.
        TraceCorruptError, TraceNotFoundError: the trace cannot be read.
        StateValueError, StateError: the module's state class cannot hold the trace's states.
    """
    trace = Trace.load(path)
    trace.check()
    named = trace.header["module"]
    module = make(named, trace) if make is not None else None
    divergences = Engine(module if module is not None else _module(named)).verify(trace)
    if divergences:
        raise TraceTestError(_report(trace, named, divergences), divergences)


def _module(named: str) -> AgentModule[Any]:
    """Return the module of an import path such as `package.module:Class`."""
    place, _, qualname = named.partition(":")
    try:
        found: Any = import_module(place)
        for part in qualname.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise TraceTestError(
            f"the module that wrote the trace, {named}, cannot be imported: {type(error).__name__}: {error}. "
            "Put it on the import path, or return a module from the hook pytest_refold_module."
        ) from error
    if not (isinstance(found, type) and issubclass(found, AgentModule)):
        raise TraceTestError(f"the module that wrote the trace, {named}, is not an AgentModule today")
    try:
        return found()
    except TypeError as error:
        raise TraceTestError(
            f"{named} cannot be made without arguments: {error}. Return one from the hook pytest_refold_module."
        ) from error


def _report(trace: Trace, named: str, divergences: list[Divergence]) -> str:
    first = divergences[0]
    if first.phase == "schema_version":
        return (
            f"the states of {trace.run_id} have schema version {first.expected} from step {first.step} on, and those "
            f"of {named} have {first.actual}: verify cannot run them again. Record the run again; `refold resume` and "
            "`refold fork` migrate it."
        )
    lines = [f"{named} no longer does what {trace.run_id} recorded; first at step {first.step}, in {first.phase}:"]
    lines += [f"  {line}" for line in _differences(first)]
    if len(divergences) > 1:
        lines.append(f"{len(divergences) - 1} more:")
        for each in divergences[1:_SHOWN]:
            lines += [f"  step {each.step}, in {each.phase}:", *(f"    {line}" for line in _differences(each))]
    lines.append("If the change is intended, record the run again. A new schema_version of the state skips old traces.")
    return "\n".join(lines)


def _differences(divergence: Divergence) -> list[str]:
    """Return the lines about a divergence.

    If both sides are documents, each differing path has a line.
    """
    changes = divergence.changes
    if not changes:
        recorded, now = shortened(divergence.expected, divergence.actual)
        return [f"recorded: {recorded}", f"today:    {now}"]
    pairs = [(change.path or "/", *shortened(change.old, change.new)) for change in changes[:_SHOWN]]
    lines = [f"{path}: recorded {recorded}, today {now}" for path, recorded, now in pairs]
    return [*lines, f"and {len(changes) - _SHOWN} more places"] if len(changes) > _SHOWN else lines
