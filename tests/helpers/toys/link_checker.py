"""A run of any length with a bit of everything: tokens, costs, errors, retries, waits; on a clock of its own."""

import random

from refold.engine import (
    Action,
    AgentModule,
    CallUsage,
    Decision,
    Observation,
    StateModel,
    StateSchema,
    effect,
    emit,
    perform,
)
from refold.testing import FakeClock

SECTIONS = ("guide", "api", "how-to", "reference", "blog")
TOPICS = ("resume", "budgets", "branching", "tools", "traces", "forking", "policies", "errors", "settings", "exports")


class Page(StateModel):
    """What was found on a page."""

    path: str
    links: int
    ok: bool


class Links(StateSchema):
    """What is still to be read, and what was found."""

    ahead: list[str] = []
    checked: int = 0
    sections: dict[str, int] = {}
    broken: list[str] = []
    retries: dict[str, int] = {}
    last: Page | None = None
    note: str = ""


class LinkChecker(AgentModule[Links]):
    """Reads the pages of a site one after the other; what it does moves its clock, so that time is no accident."""

    def __init__(self, clock: FakeClock, pages: int = 60, seed: int = 5) -> None:
        self.clock, self.pages, self.seed = clock, pages, seed
        self.tools = {"fetch": self.fetch}

    def init_state(self, task: str) -> Links:
        """Return a site of which all pages are still to be read."""
        draw = random.Random(self.seed)
        return Links(ahead=[f"/{draw.choice(SECTIONS)}/{draw.choice(TOPICS)}-{n}" for n in range(self.pages)])

    async def decide(self, state: Links) -> Decision:
        """Return the next pages to be read."""
        if not state.ahead:
            return Decision.final(f"{state.checked} pages, {len(state.broken)} broken links")
        url = state.ahead[0]
        chance = random.Random(f"{self.seed} {state.current_step}")
        why = await perform(self.think, url, chance.randint(180, 900))
        if state.current_step % 97 == 50:
            return Decision.wait("The site asks to slow down.", seconds=0.001)
        if state.current_step % 23 == 11 and len(state.ahead) > 3:
            return Decision.act([Action("fetch", {"url": each}) for each in state.ahead[:3]], rationale=why)
        return Decision.act(Action("fetch", {"url": url}), rationale=why)

    @effect(idempotent=True, usage=lambda why: CallUsage(300 + 7 * len(why), len(why) // 3, 0.0004 + len(why) / 60_000))
    async def think(self, url: str, weight: int) -> str:
        """Stand for a model that says why."""
        self.clock.advance(weight / 1000)
        return f"{url} is next in its section; it was changed since the last check, and {weight} others link to it."

    @effect(idempotent=True)
    async def fetch(self, url: str) -> int:
        """Return how many links a page has."""
        draw = random.Random(f"{self.seed} {url}")
        self.clock.advance(draw.lognormvariate(-0.4, 0.6))
        if draw.random() < 0.03:
            self.clock.advance(9)
            raise TimeoutError("no answer from docs.example.org within 10 s")
        if draw.random() < 0.1:
            emit("moved", url=url, to=url + "/")
        return draw.randint(2, 60)

    def reduce(self, state: Links, decision: Decision, observation: Observation) -> None:
        """Write down what was found."""
        for action, result in zip(decision.actions, observation.results, strict=True):
            url = action.args["url"]
            if not result.ok and state.retries.get(url, 0) < 1:
                state.retries[url] = state.retries.get(url, 0) + 1
                state.note = f"{url} failed 1 time; once more, then it counts as broken."
                continue
            state.ahead.remove(url)
            state.checked += 1
            section = url.split("/")[1]
            state.sections[section] = state.sections.get(section, 0) + 1
            state.last = Page(path=url, links=result.output or 0, ok=result.ok)
            if not result.ok:
                state.broken.append(url)
