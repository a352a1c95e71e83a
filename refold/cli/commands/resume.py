"""What `refold resume` does: goes on with a run, and asks for the answers it waits for where somebody is there."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...engine import AgentModule, Engine, RunResult, RuntimeBudget, WaitAnsweredError
from ...traces import Durability, Record, Trace
from ..errors import INTERRUPTED, InputError, one_line
from ..input.consent import Row, check_module, confirm, module_rows, pending_rows, trusted_folders
from ..input.importing import as_module, is_agent, load_module, thing_at
from ..input.questions import ask_person
from ..render.output import can_ask, write_json
from ..render.summary import Summary
from .run import Manner, hushed, tell, watched

if TYPE_CHECKING:
    from ..agent.build import Made

NOTHING_SAID: Any = ...


@dataclass(frozen=True)
class Resume:
    """How a run is to go on: with which answer to which request, and with which limits in the place of its own."""

    value: Any = NOTHING_SAID
    request: str | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    on_divergence: Literal["fail", "fork", "ignore"] = "fail"
    durability: Durability = "process"
    workspace: Path | None = None
    trust: Sequence[Path] = ()
    yes: bool = False
    module: str | None = None


def resume_trace(path: Path, module: str | None, wanted: Resume, manner: Manner) -> int:
    """Goes on with the run of a trace; gives the exit code."""
    trace = Trace.load(path)
    wanted = replace(wanted, module=module)
    if trace.status == "completed" and wanted.value is NOTHING_SAID:
        if not manner.as_json:
            print("refold: this run had completed already, and nothing is done", file=sys.stderr)
        summary = Summary.of_trace(trace)
        summary.exit_code = 0
        if manner.as_json:
            write_json(summary.to_dict())
        tell(summary, manner)
        return 0

    def ask(rows: Sequence[Row]) -> None:
        confirm(trace, "resume", [*rows, *pending_rows(trace)], yes=wanted.yes, manner=manner)

    with hushed(manner):
        runner = runner_of(trace, module, wanted.trust, wanted.workspace, before=ask)
    if not isinstance(runner, AgentModule):
        from ..agent.continue_run import resume_agent

        return resume_agent(runner, path, wanted, budget_over(trace, wanted.budget), manner)
    going = Going(path, runner, wanted, manner, budget_over(trace, wanted.budget))
    summary = going.on(wanted.value, wanted.request if wanted.value is not NOTHING_SAID else None)
    try:
        summary = going.while_a_person_answers(summary)
    except KeyboardInterrupt:
        print()
        return INTERRUPTED
    if manner.as_json:
        write_json(summary.to_dict())
    tell(summary, manner)
    return summary.exit_code or 0


@dataclass
class Going:
    """One trace that is gone on with, as often as there are answers."""

    path: Path
    module: AgentModule[Any]
    wanted: Resume
    manner: Manner
    budget: RuntimeBudget | None

    def on(self, answer: Any, request: str | None = None) -> Summary:
        """Resumes it with an answer, or a mapping of several; where its code has changed, that may be a fork of it."""
        wanted, path = self.wanted, self.path

        def work(observers: tuple[Callable[[Record], Any], ...]) -> RunResult:
            engine = Engine(self.module, observers=observers, durability=wanted.durability, workspace=wanted.workspace)
            return engine.resume(path, answer, request=request, budget=self.budget, on_divergence=wanted.on_divergence)

        summary = watched(work, self.manner, Trace.load(path).records).under(wanted.module)
        self.path = summary.trace or path
        return summary

    def while_a_person_answers(self, summary: Summary) -> Summary:
        """Asks the person at the terminal, and goes on, until nothing is open but what they have left so."""
        left: set[str] = set()
        only = self.wanted.request
        if self.wanted.value is NOTHING_SAID and only is not None and summary.waiting:
            left = {str(each["id"]) for each in summary.waiting} - {only}
            if len(left) == len(summary.waiting):
                raise InputError(f"no request {only!r} is open in this run; open: {', '.join(sorted(left))}")
        while self.wanted.value is NOTHING_SAID:
            asked = [each for each in summary.waiting if each["id"] not in left]
            if not asked or self.manner.mute or not can_ask():
                break
            answers = ask_person(asked)
            left.update(each["id"] for each in asked if each["id"] not in answers)
            if answers:
                try:
                    summary = self.on(answers)
                except WaitAnsweredError as error:
                    print(f"refold: {one_line(str(error))}", file=sys.stderr)
                    summary = self.on(NOTHING_SAID)
        return summary


def runner_of(
    trace: Trace,
    module: str | None,
    trust: Sequence[Path] | None = None,
    workspace: Path | None = None,
    *,
    verifying: bool = False,
    before: Callable[[Sequence[Row]], None] | None = None,
) -> "AgentModule[Any] | Made":
    """What goes on with a trace's run: an AgentModule, or an Agent; the one at `module`, else the one that it names.

    What the trace names is loaded from trusted folders alone. `before` is shown what will be loaded, before it is.
    """
    named = str(trace.header["module"])
    trusted = trusted_folders(trust)
    if module is None and not named.startswith("refold.modules.agent."):
        check_module(named, trusted)
        if before is not None:
            before(module_rows(named, None))
        return load_module(named, " (the trace's header names it)")
    if before is not None and module is not None:
        before(module_rows(named, module))
    found = thing_at(module) if module is not None else None
    if module is not None and not is_agent(found):
        return as_module(found, module)
    from ..agent.rebuild import recalled

    return recalled(trace, module, found, workspace, trusted=trusted, verifying=verifying, before=before)


def budget_over(trace: Trace, given: dict[str, Any]) -> RuntimeBudget | None:
    """The budget that the run had, with the given limits in the place of its own; None if none is given."""
    if not given:
        return None
    try:
        return replace(RuntimeBudget(**trace.budget), **given)
    except ValueError as error:
        raise InputError(str(error)) from None
