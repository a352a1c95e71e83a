"""A step of more actions than the page lists at once, and a result of more members than one answer has."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from view_pages import Look, Site

from refold import Action, AgentModule, Decision, Engine, Observation, StateSchema
from refold.view.exported import write_page

ACTIONS = 500
MEMBERS = 1_000


class Wide(StateSchema):
    """Nothing but what every state has."""


class Heads(AgentModule[Wide]):
    """Asks for many pages at once, then for a list of them."""

    def __init__(self) -> None:
        self.tools = {"head": self.head, "listing": self.listing}

    def init_state(self, task: str, **inputs: Any) -> Wide:
        """Return an empty state."""
        return Wide()

    def decide(self, state: Wide) -> Decision:
        """Return 500 actions, then one."""
        if state.current_step == 0:
            return Decision.act([Action("head", {"number": number}) for number in range(ACTIONS)])
        return Decision.act(Action("listing")) if state.current_step == 1 else Decision.final("done")

    def reduce(self, state: Wide, decision: Decision, observation: Observation) -> None:
        """Change nothing."""

    async def head(self, number: int) -> int:
        """Return a status; some pages do not answer."""
        if number % 200 == 150:
            raise TimeoutError(f"no answer from page {number}")
        return 200

    async def listing(self) -> list[str]:
        """Return the pages."""
        return [f"/page/{number}" for number in range(MEMBERS)]


@pytest.fixture(scope="module")
def wide(acted: Site) -> Iterator[str]:
    def run() -> Any:
        return Engine(Heads(), traces=acted.folder, seed=1).run("Ask many pages.").trace

    with ThreadPoolExecutor(1) as pool:  # Playwright keeps an event loop running in this thread
        trace = pool.submit(run).result()
    yield trace.run_id
    (acted.folder / f"{trace.run_id}.trace.jsonl").unlink()


def test_each_action_has_a_cell_and_the_failed_ones_are_first(looking: Look, acted: Site, wide: str) -> None:
    page = looking(acted.at("run", wide, k=0))
    expect(page.locator(".step-head")).to_contain_text("2 of 500 failed")
    expect(page.locator(".matrix button")).to_have_count(ACTIONS)
    expect(page.locator(".matrix button.bad")).to_have_count(2)
    expect(page.locator(".action").first).to_contain_text("no answer from page 150")
    expect(page.locator(".action").nth(1)).to_contain_text("no answer from page 350")
    expect(page.locator(".action").nth(2)).to_contain_text("head(number=0)")
    page.get_by_role("button", name="2 failed").click()
    expect(page.locator(".action")).to_have_count(2)
    page.locator(".matrix button").nth(499).click()
    expect(page.locator("#call-s0a499")).to_be_in_viewport()


def test_the_rest_of_a_wide_result_is_shown(
    looking: Look, browser: Browser, acted: Site, wide: str, tmp_path: Path
) -> None:
    out = tmp_path / "run.html"
    with out.open("wb") as file:
        write_page([acted.folder / f"{wide}.trace.jsonl"], file)
    exported = browser.new_page()
    exported.goto(f"{out.as_uri()}#/run/{wide}?k=1")
    for page in (looking(acted.at("run", wide, k=1)), exported):
        result = page.locator(".action .res")
        expect(result).to_contain_text(f"{MEMBERS - 200} more")
        result.get_by_role("button", name="Show all as JSON").click()
        expect(result.locator("pre")).to_contain_text(f'"/page/{MEMBERS - 1}"')
    exported.close()
