"""The loop itself: a generator that asks for what it wants done and is sent what came of it.

Live, resume, verify and tests are this one loop with different suppliers:

    while no stop reason for the state:          Check   -> StopReason | None
        decision    = decide(state)              Decide  -> Decision
        while the decision is a branch:
            decision = one of its candidates     Choose  -> Decision | Adopted
        observation = act(state, decision)       Act     -> Observation      (an act decision)
                    | an answer                  Wait    -> Observation      (a wait decision)
                    | nothing                                                (a final decision)
        state       = reduce(state, decision, observation)
                    | the state adopted                                      (where candidates were explored)
        commit(patch, state)                     Commit  -> None

It performs nothing and awaits nothing; `reduce`, which is pure, is the only hook it calls itself.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...traces.json_patch.make import Op
from ..endings import StopReason
from ..purity import NOWHERE, reset_frame, set_frame
from ..state.commit import fold_step
from ..state.held import Held
from ..state.model import StateSchema
from .decision import Decision, Observation


class Reducer(Protocol):
    """A module as the loop knows it: the one hook that it calls itself."""

    @property
    def _hook_names(self) -> Mapping[str, Sequence[str]]:
        """The parameters that each hook takes."""

    @property
    def reduce(self) -> Callable[..., Any]:
        """See AgentModule.reduce."""


@dataclass(slots=True)
class Check:
    """Wants to know whether the run ends at this state: send the StopReason, or None."""

    state: StateSchema


@dataclass(slots=True)
class Decide:
    """Wants a Decision for this state."""

    state: StateSchema


@dataclass(slots=True)
class Act:
    """Wants an act decision carried out: send the Observation."""

    state: StateSchema
    decision: Decision


@dataclass(slots=True)
class Wait:
    """Wants the answer that a wait decision waits for: send the Observation that holds it."""

    state: StateSchema
    decision: Decision


@dataclass(slots=True)
class Choose:
    """Wants a branch decided: send the candidate to go on with, or what exploring them has led to."""

    state: StateSchema
    decision: Decision


@dataclass(slots=True)
class Adopted:
    """The state that exploring has led to; the step's commit leads there."""

    state: StateSchema


@dataclass(slots=True)
class Commit:
    """Wants a step written, and then `state` held: `patch` leads to it from the state before."""

    state: StateSchema
    patch: list[Op]
    observation: Observation


Want = Check | Decide | Choose | Act | Wait | Commit
NOTHING = Observation()


def fold(module: Reducer, held: Held) -> Generator[Want, Any, StopReason]:
    """Folds a run from the state held on; returns why it ended.

    What a hook raises, and what the supplier throws, passes through; the state held is then the last one committed.
    """
    while True:
        reason: StopReason | None = yield Check(held.state)
        if reason is not None:
            return reason
        decision: Decision | Adopted = yield Decide(held.state)
        while isinstance(decision, Decision) and decision.mode == "branch":
            decision = yield Choose(held.state, decision)
        if isinstance(decision, Adopted):
            yield Commit(*adopt_step(held, decision.state), NOTHING)
            continue
        observation = NOTHING
        if decision.mode == "act":
            observation = yield Act(held.state, decision)
        elif decision.mode == "wait":
            observation = yield Wait(held.state, decision)
        yield Commit(*reduce_step(module, held, decision, observation), observation)


def reduce_step(
    module: Reducer, held: Held, decision: Decision, observation: Observation
) -> tuple[StateSchema, list[Op]]:
    """One call of `reduce`, where no effect is allowed, and its commit; `current_step` goes up by one."""
    offered: dict[str, Any] = {"decision": decision, "observation": observation}
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
        return fold_step(held.state, reduce, {"current_step": held.state.current_step + 1})
    finally:
        reset_frame(token)


def adopt_step(held: Held, state: StateSchema) -> tuple[StateSchema, list[Op]]:
    """The commit of a step that takes over a state from elsewhere; what the engine writes stays its own."""
    engine_fields = {"current_step": held.state.current_step + 1}
    return fold_step(held.state, lambda draft: state, engine_fields)
