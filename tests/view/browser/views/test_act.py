"""What the page starts: answers, forks, resumes, verification; real runs of real modules."""

import re

from playwright.sync_api import Page, expect
from view_pages import Look, Site


def agree(page: Page) -> None:
    """Say yes to the question before the module that the trace names is loaded."""
    asked = page.get_by_role("dialog", name="Run this module's code?")
    expect(asked).to_contain_text("PayInvoices")
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    asked.get_by_role("button", name="Run it").click()


def test_an_answer_is_given_in_a_form_of_its_schema(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "waiting", act=True))
    form = page.locator("form.form")
    expect(page.get_by_role("heading", name="Pay 700 € to Grace?")).to_be_visible()
    assert form.locator("input:checked").count() == 0
    form.get_by_role("button", name="Answer and resume").click()
    expect(form.get_by_text("Shall it be paid? choose yes or no.")).to_be_visible()
    expect(form.get_by_label("Yes")).to_be_focused()
    page.keyboard.press("Space")
    form.get_by_label(re.compile("Reason")).fill("It was <b>late</b>")
    form.get_by_role("button", name="As JSON").click()
    expect(form.get_by_label("The answer as JSON")).to_have_value(re.compile('"approved": true'))
    form.get_by_role("button", name="As a form").click()
    form.get_by_role("button", name="Answer and resume").click()
    agree(page)
    expect(page.get_by_role("heading", name="Pay 1200 € to Alan?")).to_be_visible(timeout=30_000)


def test_a_fork_is_made_from_an_edited_value_and_opens_beside_its_source(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "game", k=2, act=True))
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog", name=re.compile("Fork from state"))
    dialog.get_by_label("Path").fill("/hands/0/tried")
    page.keyboard.press("Tab")
    value = dialog.get_by_label("New value")
    expect(value).not_to_have_value("")
    value.fill("7")
    expect(dialog.locator("ins")).to_have_text("7")
    expect(dialog.locator(".cmd code")).to_contain_text("--set /hands/0/tried=7")
    dialog.get_by_label("Path").fill("/current_step")
    page.keyboard.press("Tab")
    expect(dialog.get_by_text("The engine writes this field")).to_be_visible()
    dialog.get_by_label("Path").fill("/hands/0/tried")
    page.keyboard.press("Tab")
    expect(value).not_to_have_value("")
    value.fill("7")
    dialog.get_by_role("button", name="Fork and run").click()
    asked = page.get_by_role("dialog", name="Run this module's code?")
    asked.get_by_role("button", name="Run it").click()
    expect(page.get_by_role("heading", name=re.compile("Changed by the fork"))).to_be_visible(timeout=30_000)
    assert "/compare/" in page.url


def test_saying_no_runs_nothing(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "search", act=True))
    page.get_by_role("button", name="Verify").click()
    asked = page.get_by_role("dialog", name="Run this module's code?")
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(asked).to_have_count(0)
    expect(page.get_by_role("button", name="Verify")).to_be_focused()
    expect(page.get_by_text("Verified")).to_have_count(0)


def test_verify_says_that_all_is_as_it_was(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "fork", act=True))
    page.get_by_role("button", name="Verify").click()
    page.get_by_role("dialog").get_by_role("button", name="Run it").click()
    expect(page.get_by_text(re.compile("Verified"))).to_be_visible(timeout=30_000)


def test_without_a_token_the_page_shows_commands(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "answered", k=1))
    page.get_by_role("button", name=re.compile("Fork from here")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("This page only shows: run the command in a terminal.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Fork and run")).to_have_count(0)
