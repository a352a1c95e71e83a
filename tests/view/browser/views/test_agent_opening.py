"""Where an Agent's run opens: at its question if it waits, at the failing step if it failed."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import expect
from view_pages import Look, Site

from refold.modules.agent import Agent, FunctionGenerator, Message
from refold.modules.tools import ask_user

TURNS = 8


def _says(messages: Sequence[Message], params: Any) -> Any:
    said = sum(message.role == "assistant" for message in messages)
    if said < TURNS:
        asked = {"question": f"Is page {said} right?", "options": ["go on", "stop"]}
        return {"text": "word " * 60, "calls": [{"ask_user": asked}]}
    raise RuntimeError("the provider answered 500")


@pytest.fixture(scope="module")
def agents(acted: Site) -> Iterator[dict[str, str]]:
    def talk(goal: str, **options: Any) -> str:
        engine: Any = {**options, "traces": acted.folder}
        agent = Agent(name="asks", model=FunctionGenerator(_says), tools=[ask_user], engine=engine)
        run_id: str = asyncio.run(agent.run(goal)).trace.run_id
        return run_id

    with ThreadPoolExecutor(1) as pool:  # Playwright keeps an event loop running in this thread
        waits = pool.submit(talk, "Read many pages. " * 200).result()
        fails = pool.submit(talk, "Read many pages.", on_wait=lambda request: "go on").result()
    yield {"waits": waits, "fails": fails}
    for run_id in (waits, fails):
        (acted.folder / f"{run_id}.trace.jsonl").unlink()


def test_a_waiting_agent_opens_at_its_question_and_a_failed_one_at_its_step(
    looking: Look, acted: Site, agents: dict[str, str]
) -> None:
    page = looking(acted.at("run", agents["waits"], act=True))
    expect(page.locator(".turn.now")).to_have_count(1)
    expect(page.locator(".ask h2")).to_be_in_viewport()
    form = page.locator(".ask form")
    for name in ("go on", "stop", "no answer"):  # the answers themselves, not first whether there is one
        expect(form.get_by_role("radio", name=name)).not_to_be_checked()
    expect(page.locator(".ask pre").first).to_be_hidden()
    expect(form.get_by_role("button", name="Answer and resume")).to_be_in_viewport()
    page.goto(acted.at("run", agents["fails"]))
    expect(page.locator(".turn.now")).to_contain_text("the provider answered 500")
    expect(page.locator(".turn.now")).to_be_in_viewport()
    expect(page.locator('.st[aria-current="step"].bad')).to_be_visible()
