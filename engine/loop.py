"""The loop itself: a generator that asks for what it wants done and is sent what came of it.

Live, resume, verify and tests are this one loop with different suppliers:

    while no stop reason for the state:          Check   -> StopReason | None
        decision    = decide(state)              Decide  -> Decision
        observation = act(state, decision)       Act     -> Observation      (not for a final decision)
        state       = reduce(state, decision, observation)
        commit(patch, state)                     Commit  -> None

It performs nothing and awaits nothing; `reduce`, which is pure, is the only hook it calls itself.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

from ..traces.compare import Op
from .commit import fold_step
from .context import NOWHERE, reset_frame, set_frame
from .decision import Decision, Observation
from .errors import DecisionError
from .module import AgentModule
from .reasons import StopReason
from .state import StateSchema


class Check(NamedTuple):
    """Wants to know whether the run ends at this state: send the StopReason, or None."""

    state: StateSchema


class Decide(NamedTuple):
    """Wants a Decision for this state."""

    state: StateSchema


class Act(NamedTuple):
    """Wants an act decision carried out: send the Observation."""

    state: StateSchema
    decision: Decision


class Commit(NamedTuple):
    """Wants a step written: `patch` leads from the state before to `state`."""

    state: StateSchema
    decision: Decision
    observation: Observation
    patch: list[Op]


Want = Check | Decide | Act | Commit
NOTHING = Observation()


def fold(module: AgentModule[Any], state: StateSchema) -> Generator[Want, Any, tuple[StateSchema, StopReason]]:
    """Folds a run from `state` on; returns the last state and why it ended.

    What a hook raises, and what the supplier throws, passes through; the last state sent with a Commit then stands.
    """
    while True:
        reason: StopReason | None = yield Check(state)
        if reason is not None:
            return state, reason
        decision: Decision = yield Decide(state)
        observation = NOTHING
        if decision.mode == "act":
            observation = yield Act(state, decision)
        elif decision.mode != "final":
            raise DecisionError(f"this engine carries out act and final decisions, not {decision.mode}")
        state, patch = reduce_step(module, state, decision, observation)
        yield Commit(state, decision, observation, patch)


def reduce_step(
    module: AgentModule[Any], state: StateSchema, decision: Decision, observation: Observation
) -> tuple[StateSchema, list[Op]]:
    """One call of `reduce`, where no effect is allowed, and its commit; `current_step` goes up by one."""
    offered: dict[str, Any] = {"state": state, "decision": decision, "observation": observation}
    names = module._hook_names["reduce"]

    def reduce(draft: Any) -> Any:
        returned = module.reduce(**{name: draft if name == "state" else offered[name] for name in names})
        if decision.mode != "final":
            return returned
        if returned is None or returned is draft:
            if draft.final_result is None:
                draft.final_result = decision.answer
        elif getattr(returned, "final_result", "") is None:
            returned = returned.model_copy(update={"final_result": decision.answer})
        return returned

    token = set_frame(NOWHERE)
    try:
        return fold_step(state, reduce, {"current_step": state.current_step + 1})
    finally:
        reset_frame(token)
