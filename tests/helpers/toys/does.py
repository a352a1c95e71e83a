"""A module that does nothing but what a test gives it as its `reduce`, for some steps."""

from typing import Any

from refold import (
    Action,
    AgentModule,
    Decision,
    Observation,
    StateSchema,
)


class Thing(StateSchema):
    items: list[Any] = []
    nested: dict[str, Any] = {}


class Does(AgentModule[Thing]):
    """Runs a function as its reduce, for some steps."""

    tools = {"noop": lambda: "ok"}

    def __init__(self, reduce: Any = None, steps: int = 1, final: str | None = "end") -> None:
        self.work = reduce or (lambda state: None)
        self.steps = steps
        self.final = final

    def init_state(self, task: str, **inputs: Any) -> Thing:
        return Thing(nested={"a": {"b": [0, 1, [0, 1, {"x": [1]}]]}}, items=list(range(8)))

    def decide(self, state: Thing) -> Decision:
        if state.current_step >= self.steps and self.final:
            return Decision.final(self.final)
        return Decision.act([Action("noop")])

    def reduce(self, state: Thing, decision: Decision, observation: Observation) -> None:
        if decision.mode == "act":
            self.work(state)
