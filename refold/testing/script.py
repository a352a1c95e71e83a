"""A module that plays given decisions: to try tools, stop criteria and budgets without a solver or a model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..engine import AgentModule, Decision, Observation, StateSchema


class ScriptState(StateSchema):
    """What a script has seen: for each step its results, as `ActionResult.to_dict()` gives them.

    `answers` holds what each wait brought; None where its time passed.
    """

    seen: list[list[dict[str, Any]]] = []
    answers: list[Any] = []


class Scripted(AgentModule[ScriptState]):
    """Plays `decisions` one a step, with `tools` to act; a script that is played out ends with "done"."""

    def __init__(self, decisions: Sequence[Decision], *, tools: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self.decisions = tuple(decisions)
        self.tools = dict(tools or {})

    def init_state(self, task: str, **inputs: Any) -> ScriptState:
        """Nothing seen yet; inputs are not looked at."""
        return ScriptState()

    def decide(self, state: ScriptState) -> Decision:
        """The decision whose turn it is."""
        k = state.current_step
        return self.decisions[k] if k < len(self.decisions) else Decision.final("done")

    def reduce(self, state: ScriptState, decision: Decision, observation: Observation) -> None:
        """Keeps what was seen."""
        state.seen.append([result.to_dict() for result in observation.results])
        if decision.mode == "wait":
            state.answers.append(observation.value)


def scripted(decisions: Sequence[Decision], *, tools: Mapping[str, Callable[..., Any]] | None = None) -> Scripted:
    """A module that plays `decisions`, one a step, and then ends with "done".

    `state.seen` holds what came of them, `state.answers` what was answered.
    """
    return Scripted(decisions, tools=tools)
