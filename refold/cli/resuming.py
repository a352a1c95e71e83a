"""What `refold resume` does: goes on with a run, and asks about calls of unknown fate where somebody is there."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..engine import Engine, RunResult, RuntimeBudget
from ..traces import Durability, Record, Trace
from .asking import ask_fates, can_ask
from .failures import INTERRUPTED, InputError
from .importing import load_module
from .out import write_json
from .running import Manner, hushed, tell, watched

NOTHING_SAID: Any = ...


@dataclass(frozen=True)
class Resume:
    """How a run is to go on: with which answer to which request, and with which limits in the place of its own."""

    value: Any = NOTHING_SAID
    request: str | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    on_divergence: Literal["fail", "ignore"] = "fail"
    durability: Durability = "process"
    workspace: Path | None = None


def resume_trace(path: Path, module: str | None, wanted: Resume, manner: Manner) -> int:
    """Goes on with the run of a trace; gives the exit code."""
    trace = Trace.load(path)
    header = trace.header
    with hushed(manner):
        loaded = load_module(*_module_of(header, module))
    effective = _budget(trace, wanted.budget)

    def going_on(answer: Any) -> Callable[[tuple[Callable[[Record], Any], ...]], RunResult]:
        def work(observers: tuple[Callable[[Record], Any], ...]) -> RunResult:
            engine = Engine(loaded, observers=observers, durability=wanted.durability, workspace=wanted.workspace)
            return engine.resume(
                path, answer, request=wanted.request, budget=effective, on_divergence=wanted.on_divergence
            )

        return work

    summary = watched(going_on(wanted.value), manner, trace.records)
    while summary.waiting and wanted.value is NOTHING_SAID and not manner.mute and can_ask():
        try:
            answers = ask_fates(summary.waiting)
        except KeyboardInterrupt:
            print()
            return INTERRUPTED
        if not answers:
            break
        summary = watched(going_on(answers), manner, Trace.load(path).records)
    if manner.as_json:
        write_json(summary.to_dict())
    tell(summary, manner)
    return summary.exit_code or 0


def _module_of(header: Record, given: str | None) -> tuple[str, str]:
    return (given, "") if given is not None else (str(header["module"]), " (the trace's header names it)")


def _budget(trace: Trace, given: dict[str, Any]) -> RuntimeBudget | None:
    """The budget that the run had, with the given limits in the place of its own; None if none is given."""
    if not given:
        return None
    try:
        return replace(RuntimeBudget(**trace.budget), **given)
    except ValueError as error:
        raise InputError(str(error)) from None
