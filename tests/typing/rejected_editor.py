"""Mistakes that an editor underlines, each marked with the code of mypy's error; checked and never run."""

import refold
from refold import AgentModule, BestOfN, Decision, Engine, SelectBest, StateSchema, verify
from refold.modules.agent import Agent


class Search(StateSchema):
    low: int = 0


class Guesser(AgentModule[Search]):
    def init_state(self, task: str) -> Search:
        return Search()


def rate(state: Search) -> float:
    return float(state.low)


def weigh(state: Search, decision: Decision) -> float:
    return float(len(decision.actions))


result = Engine(Guesser()).run("t")
typo = result.state.lwo  # expect: attr-defined
verify(result.trace, Guesser())  # expect: arg-type
missing = refold.nonsense  # expect: attr-defined
BestOfN(weigh)  # expect: arg-type
SelectBest(rate)  # expect: arg-type
Engine(Guesser(), trace="runs")  # expect: call-arg
Agent(name="t", engine={"trace": "runs"})  # expect: call-overload
