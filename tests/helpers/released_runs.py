"""The module and the Agent whose traces every release leaves: do not change what they do."""

from pathlib import Path
from typing import Any

from refold import Action, AgentModule, Decision, Engine, Observation, StateModel, StateSchema, ask, new_id, now, rng
from refold.modules.agent import Agent, ScriptedGenerator, tool

ROOM = Path(__file__).parents[1] / "traces" / "golden"
ANSWER = "yes"


class Item(StateModel):
    name: str
    price: int


class Basket(StateSchema):
    items: list[Item] = []
    notes: dict[str, str] = {}
    approved: str = ""


def price(name: str) -> int:
    return 3 * len(name)


class Shop(AgentModule[Basket]):
    """Looks up two prices at once, takes an effect of each kind, asks a person, and ends."""

    tools = {"price": price}

    def init_state(self, task: str) -> Basket:
        return Basket()

    async def decide(self, state: Basket) -> Decision:
        if not state.items:
            return Decision.act([Action("price", {"name": "tea"}), Action("price", {"name": "bread"})])
        if "drawn" not in state.notes:
            meta = {"id": new_id(), "drawn": rng("n").randint(1, 6), "late": now().year > 2000}
            return Decision.branch(
                [Decision.act([Action("price", {"name": "jam"})], meta=meta), Decision.final("nothing")]
            )
        if not state.approved:
            return Decision.wait(prompt="Buy?", schema={"enum": ["yes", "no"]})
        return Decision.final(f"bought {len(state.items)} for {sum(each.price for each in state.items)}")

    def reduce(self, state: Basket, decision: Decision, observation: Observation) -> None:
        for action, result in zip(decision.actions, observation.results, strict=True):
            state.items.append(Item(name=action.args["name"], price=result.output))
        if decision.meta:
            state.notes["drawn"] = str(decision.meta["drawn"])
        if decision.mode == "wait":
            state.approved = observation.value


@tool
async def book(city: str) -> str:
    """Book a flight."""
    return f"{city} is booked" if await ask(f"Book {city}?", {"enum": ["yes", "no"]}) == "yes" else "not booked"


def travel() -> Agent:
    script: list[Any] = [{"calls": [{"book": {"city": "Oslo"}}]}, "Oslo is booked."]
    return Agent(name="travel", model=ScriptedGenerator(script), instructions="Book what is asked.", tools=[book])


MODULES: dict[str, Any] = {"module": Shop, "agent": lambda: travel().module()}
ENDS = {"module": "bought 3 for 33", "agent": "Oslo is booked."}


def record(folder: Path) -> list[Path]:
    """Write the traces of this version into a folder: of each, one that waits, and one that was answered."""
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODULES.items():
        for state in ("waiting", "completed"):
            engine: Engine[Any] = Engine(make(), seed=7)
            result = engine.run("shop")
            if state == "completed":
                result = engine.resume(result.trace, ANSWER)
            assert result.status == state, (name, result)
            written.append(folder / f"{name}-{state}.trace.jsonl")
            written[-1].write_bytes(result.trace.data)
    return written
