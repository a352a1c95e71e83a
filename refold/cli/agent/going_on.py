"""What `refold resume` and `refold fork` do with a run of an Agent: its tools are entered, and it is shown."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...engine import RuntimeBudget, WaitAnsweredError
from ...modules.agent import Agent, ToolOutcome, Trajectory
from ...traces import Trace
from ..asking import ask_person
from ..failures import INTERRUPTED, one_line
from ..forking import Fork
from ..out import console
from ..resuming import NOTHING_SAID, Resume
from ..running import Manner, hushed
from ..text import value_text
from .goal import introduce, tell_turn
from .making import Made
from .session import Session, Turn
from .view import AgentView

_UNKNOWN = "unknown_effect"


def resume_agent(made: Made, path: Path, wanted: Resume, budget: RuntimeBudget | None, manner: Manner) -> int:
    """Goes on with a run; what it waits for is asked at the terminal, if it is not given. Gives the exit code."""
    request = wanted.request if wanted.value is not NOTHING_SAID else None

    async def work(agent: Agent) -> Trajectory:
        given: dict[str, Any] = {"request": request, "budget": budget, "on_divergence": wanted.on_divergence}
        return await agent.resume(path, with_outcomes(path, wanted.value), **given)

    options = {"durability": wanted.durability, "workspace": made.config.path(made.config.workspace)}
    earlier = Trace.load(path).records
    only = wanted.request if request is None else None
    return _shown(made, work, earlier, manner, options, wanted.module, only)


def fork_agent(made: Made, trace: Trace, home: Path, wanted: Fork, budget: RuntimeBudget | None, manner: Manner) -> int:
    """Runs on from a state of a run, in a trace of its own; gives the exit code."""

    async def work(agent: Agent) -> Trajectory:
        return await agent.fork(
            trace, wanted.at, wanted.edit or None, reuse_effects=wanted.reuse_effects, budget=budget
        )

    options = {
        "durability": wanted.durability,
        "workspace": made.config.path(made.config.workspace),
        "traces": home,
    }
    return _shown(made, work, (), manner, options, wanted.module)


def _shown(
    made: Made,
    work: Any,
    earlier: Any,
    manner: Manner,
    options: dict[str, Any],
    module: str | None,
    only: str | None = None,
) -> int:
    asks = False if manner.mute else None
    with hushed(manner), Session(made, asks=asks, only=only) as session:
        view = None
        if not manner.mute:
            introduce(made)
            view = AgentView(console(), earlier, session.asks)
        try:
            turn = settled(session, session.turn(work, view, **options), **options)
        except KeyboardInterrupt:
            print()
            return INTERRUPTED
    turn.summary.under(module)
    tell_turn(turn, manner)
    return turn.code


def settled(session: Session, turn: Turn, **options: Any) -> Turn:
    """Asks the person what became of calls that nobody knows the fate of, and goes on with the run; see `Going`.

    An engine asks no handler for these, as it is a person's to know. Raises KeyboardInterrupt where they leave.
    """
    left: set[str] = set()
    while session.asks and turn.summary.trace is not None:
        unknown = [each for each in turn.summary.waiting if each["kind"] == _UNKNOWN]
        asked = [each for each in unknown if each["id"] not in left and session.only in (None, each["id"])]
        if not asked:
            break
        answers = ask_person(asked)
        left.update(each["id"] for each in asked if each["id"] not in answers)
        try:
            turn = _again(session, turn.summary.trace, answers, options) if answers else turn
        except WaitAnsweredError as error:
            print(f"refold: {one_line(str(error))}", file=sys.stderr, flush=True)
    return turn


def _again(session: Session, path: Path, answers: dict[str, Any], options: dict[str, Any]) -> Turn:
    view = AgentView(console(), Trace.load(path).records, session.asks)
    given = with_outcomes(path, answers)
    return session.turn(lambda agent: agent.resume(path, given), view, **options)


def with_outcomes(path: Path, value: Any) -> Any:
    """An answer, or answers by request, with what a tool gave in the form that an Agent's tools give it in.

    A person who says what became of a call knows its result, and not that form.
    """
    if not isinstance(value, Mapping):
        return value
    trace = Trace.load(path)
    tools = {record["key"] for record in trace.records if record.kind == "intent" and "action" in record}
    unknown = {each["id"]: each["details"].get("key") in tools for each in trace.waiting if each["kind"] == _UNKNOWN}
    if set(value) == {"ran"}:
        return _as_outcome(value) if all(unknown.values()) else value
    return {name: _as_outcome(each) if unknown.get(name) else each for name, each in value.items()}


def _as_outcome(answer: Any) -> Any:
    if not isinstance(answer, Mapping) or set(answer) != {"ran"}:
        return answer
    result = answer["ran"]
    if isinstance(result, Mapping) and "content" in result:
        return answer
    text = result if isinstance(result, str) else value_text(result)
    return {"ran": ToolOutcome(text).to_dict()}
