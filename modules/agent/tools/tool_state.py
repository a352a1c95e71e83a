"""What tools keep from one call to the next, as a value of the run's state: how they read it, and how it is changed.

Whoever runs tools has a field of their state for it, such as `kept: dict[str, Any] = {}`, and

- in `act` gives it to the tools: `with tool_context(ToolContext(facts={"kept": state.kept})): ...`
- in `reduce` folds in what they ask for: `fold_kept(state.kept, outcome)` for each outcome, in the calls' order.

An Agent does both. Then it is in every commit, and survives replay, resume and fork as all state does. The calls of one
step see what was kept when the step began.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, TypeVar, cast

from .context import ContextFact, current_tool_call
from .outcome import ToolOutcome
from .output import outcome_of

KEPT = "kept"
"""The name of the fact, and of the member of a signal."""

T = TypeVar("T")


def kept() -> Mapping[str, Any] | None:
    """What tools have kept in the state of the run; None where nobody keeps anything."""
    if current_tool_call.get() is None:
        return None
    return cast("Mapping[str, Any] | None", ContextFact(KEPT, default=None).resolve())


def keeping(result: T, change: Mapping[str, Any]) -> T:
    """The result of a tool that asks for a change of what is kept: a JSON merge patch (RFC 7396).

    To be returned by the tool's function as it is.
    """
    outcome = outcome_of(result)
    asked = ToolOutcome(outcome.content, outcome.stop, {**(outcome.signal or {}), KEPT: dict(change)}, outcome.metadata)
    return cast(T, asked)


def fold_kept(state: MutableMapping[str, Any], outcome: ToolOutcome) -> None:
    """Makes the change that a call has asked for in what is kept. Pure but for `state`."""
    change = (outcome.signal or {}).get(KEPT)
    if isinstance(change, Mapping):
        _merge(state, change)


def _merge(target: MutableMapping[str, Any], change: Mapping[str, Any]) -> None:
    for name, value in change.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, Mapping):
            if not isinstance(target.get(name), MutableMapping):
                target[name] = {}
            _merge(target[name], value)
        else:
            target[name] = value
