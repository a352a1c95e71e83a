"""A module with a fault wherever one asks for it, and a folder of runs that ended in every way."""

from pathlib import Path
from typing import Any

from refold import Engine, RuntimeBudget, Task
from refold.engine import Action, AgentModule, Decision, Observation, StateSchema
from refold.modules.agent import Agent, FunctionGenerator, ScriptedGenerator
from refold.modules.examples.approval import PayInvoices
from refold.modules.tools import ask_user

NAMES = ("salt", "pepper", "flour")
STORY = "# The story\n\nOnce upon a time:\n\n- a *storm*\n- **two** keepers\n"


class Plan(StateSchema):
    """What was bought, and its prices."""

    prices: dict[str, int] = {}
    bought: list[str] = []


def look_up(name: str) -> int:
    """Return a price."""
    return len(name)


def price_of(state: Plan, name: str) -> int:
    """Return the price of a thing that may have none."""
    return state.prices[name]


class Shopper(AgentModule[Plan]):
    """Buys three things. `fault` is the hook that raises, and the step: "decide 2"; by default none."""

    tools = {"look_up": look_up}

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def init_state(self, task: str) -> Plan:
        """Return an empty plan."""
        if self.fault == "init 0":
            raise ValueError("the list of prices is empty: expected at least one line")
        return Plan()

    def decide(self, state: Plan) -> Decision:
        """Look the next thing up."""
        if self.fault == f"decide {state.current_step}":
            price_of(state, "nutmeg")
        if len(state.bought) == len(NAMES):
            return Decision.final("bought **all** of it")
        return Decision.act(Action("look_up", {"name": NAMES[len(state.bought)]}))

    def reduce(self, state: Plan, decision: Decision, observation: Observation) -> None:
        """Keep the price."""
        if self.fault == f"reduce {state.current_step}":
            price_of(state, "nutmeg")
        for action, result in zip(decision.actions, observation.results, strict=True):
            state.bought.append(action.args["name"])
            state.prices[action.args["name"]] = result.output


def _refuses(messages: Any, params: Any) -> Any:
    raise ValueError("the key of the model is not valid")


def make_ended_runs(root: Path) -> dict[str, str]:
    """Make runs that ended in every way, in a folder and two below it; return their ids by name."""
    ids: dict[str, str] = {}

    def shop(fault: str, folder: Path, **options: Any) -> Any:
        engine = Engine(Shopper(fault), traces=folder, seed=1, **options)
        return engine.run(Task(id=f"buy-{fault or 'all'}", objective=f"Buy what is on the list {fault}".strip()))

    for fault in ("init 0", "decide 0", "decide 2", "reduce 1", ""):
        ids[fault or "well"] = shop(fault, root / "shop").run_id
    well = root / "shop" / f"{ids['well']}.trace.jsonl"
    ids["fork"] = Engine(Shopper(), traces=root / "shop").fork(well, 2).run_id
    little = shop("", root, budget=RuntimeBudget(max_steps=1))
    ids["stopped"] = little.run_id
    twice = shop("", root / "shop", budget=RuntimeBudget(max_steps=1))
    for most in (2, 10):
        twice = Engine(Shopper(), traces=root / "shop").resume(twice.trace, budget=RuntimeBudget(max_steps=most))
    ids["resumed"] = twice.run_id
    cut = shop("", root / "shop")
    ids["interrupted"] = cut.run_id
    assert cut.trace.path is not None
    lines = cut.trace.path.read_bytes().splitlines(keepends=True)
    cut.trace.path.write_bytes(b"".join(lines[:9]))
    inputs = {"invoices": [{"to": "Ada", "amount": 40}], "book": str(root / "payments.txt")}
    asks = Task(id="pay", objective="Pay what is owed", inputs=inputs)
    ids["asks"] = Engine(PayInvoices(), traces=root, seed=1).run(asks).run_id
    options: Any = {"traces": root / "agents", "seed": 1}
    asking = {"ask_user": {"question": "May I use your name?"}}, {"ask_user": {"question": "In which year?"}}
    scripts: dict[str, Any] = {
        "critic": (ScriptedGenerator([{"text": "", "calls": list(asking)}, {"text": STORY}]), "Review the story"),
        "teller": (ScriptedGenerator([{"text": STORY}]), "Tell the story"),
        "novelist": (FunctionGenerator(_refuses), "Write a story"),
    }
    for name, (model, goal) in scripts.items():
        trajectory = Agent(name=name, model=model, tools=[ask_user], engine=options).run_sync(goal)
        ids[name] = trajectory.trace.header["run_id"]
    return ids
