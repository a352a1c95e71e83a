"""A menu to eat through: a module that decides what it is given, and strategies to try on it."""

from typing import Any

import anyio
import pytest

from refold import (
    Action,
    AgentModule,
    BeamSearch,
    BestFirst,
    BestOfN,
    Decision,
    MonteCarloTreeSearch,
    Observation,
    SelectBest,
    SelectFirst,
    StateSchema,
    charge,
    effect,
    emit,
    perform,
)


class Menu(StateSchema):
    eaten: list[str] = []
    ids: list[str] = []


def dish(name: str) -> str:
    return name


def eat(*names: str) -> Decision:
    return Decision.act([Action("dish", {"name": name}) for name in names])


class Eats(AgentModule[Menu]):
    """Decides what it is given, one decision a step, and notes what came of it."""

    tools = {"dish": dish}

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = decisions

    def init_state(self, task: str) -> Menu:
        return Menu()

    def decide(self, state: Menu) -> Decision:
        if state.current_step >= len(self.decisions):
            return Decision.final("full")
        return self.decisions[state.current_step]

    def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
        state.eaten += [result.output for result in observation.results]


class Fragile(Eats):
    """Breaks in `reduce` at what is called bad."""

    def reduce(self, state: Menu, decision: Decision, observation: Observation) -> None:
        super().reduce(state, decision, observation)
        if state.eaten and state.eaten[-1].startswith("bad"):
            raise ValueError(f"{state.eaten[-1]} cannot be eaten")


def last_letter(state: Menu) -> float:
    return float(ord(state.eaten[-1][-1])) if state.eaten else 0.0


def best_letter(state: Menu, decision: Decision) -> float:
    if decision.mode == "branch":
        several = () if isinstance(decision.candidates, int) else decision.candidates
        return max([best_letter(state, each) for each in several], default=0.0)
    return float(ord(decision.actions[-1].args["name"][-1])) if decision.actions else 0.0


SEARCHES: dict[str, Any] = {
    "first": SelectFirst(),
    "best": SelectBest(best_letter),
    "n": BestOfN(last_letter),
    "n1": BestOfN(last_letter, steps=1),
    "beam": BeamSearch(20, 9, last_letter),
    "best first": BestFirst(last_letter, 50),
    "tree": MonteCarloTreeSearch(last_letter, 50),
}
everywhere = pytest.mark.parametrize("folder", [False, True], ids=["memory", "files"])
by_all = pytest.mark.parametrize("name", SEARCHES)


@effect(name="judged")
async def judge_model(eaten: list[str]) -> float:
    await anyio.sleep(0)
    charge(tokens_in=10, tokens_out=1, cost=0.5)
    return last_letter(Menu(eaten=eaten))


async def judged(state: Menu) -> float:
    emit("judging", eaten=list(state.eaten))
    return await perform(judge_model, list(state.eaten))
