"""The Run view: its parts follow one step, by keys and by address; only rows in sight are drawn."""

import pytest
from playwright.sync_api import expect
from view_pages import Look, Site, faults, overflow

ROWS_MOST = 120
"""Rows of the list of steps that are drawn at once, in a window of 860 px; the run has more."""


def test_keys_move_everything_and_the_address(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    expect(page.locator(".summary")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Step 1", exact=True)).to_be_visible()
    expect(page).to_have_url(site.at("run", "links", k=1))
    expect(page.locator('.st[aria-current="step"] .i')).to_have_text("1")
    expect(page.get_by_role("heading", name="State after step 1")).to_be_visible()
    expect(page.get_by_role("slider", name="Step")).to_have_attribute("aria-valuenow", "1")
    page.keyboard.press("e")
    expect(page.locator('.st[aria-current="step"].bad')).to_be_visible()
    expect(page.locator(".block.bad").first).to_contain_text("TimeoutError")
    page.keyboard.press("s")
    expect(page.locator(".summary")).to_be_visible()


def test_a_path_has_a_history(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=5, path="/checked"))
    expect(page.locator(".hist")).to_contain_text("changes")
    page.keyboard.press("]")
    expect(page).to_have_url(site.at("run", "links", k=6, path="/checked").replace("path=/", "path=%2F"))
    page.keyboard.press("Escape")
    expect(page.locator(".hist")).to_have_count(0)


def test_a_change_leads_to_the_step_that_wrote_the_value(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=5, state="all"))
    page.locator(".state .at", has_text="@4").or_(page.locator(".state .at", has_text="@5")).first.click()
    expect(page.locator('.st[aria-current="step"]')).to_be_visible()


def test_only_rows_in_sight_are_drawn(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    expect(page.locator(".st").first).to_be_visible()
    page.keyboard.press("End")
    expect(page.locator('.st[aria-current="step"]')).to_be_visible()
    steps = int(page.get_by_role("slider", name="Step").get_attribute("aria-valuemax") or 0) + 1
    assert page.locator(".st").count() < ROWS_MOST < steps


def test_a_search_goes_to_its_hits(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    expect(page.locator(".summary")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("counts as broken")
    expect(page.locator(".hit").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator('.hit[aria-current="true"]')).to_be_visible()
    expect(page.locator('.st[aria-current="step"]')).to_be_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", 1440)])
def test_axe_finds_nothing(looking: Look, site: Site, theme: str, width: int) -> None:
    page = looking(site.at("run", "links"), theme=theme, width=width, height=844, audited=True)
    found: dict[str, object] = {}
    views: list[tuple[str, dict[str, object], str]] = [
        ("summary", {"k": "s"}, ".summary"),
        ("step", {"k": 7, "path": "/checked"}, ".action"),
    ]
    for name, asked, shown in views:
        page.goto(site.at("run", "links", act=False, **asked))
        expect(page.locator(shown).first).to_be_visible()
        if here := faults(page):
            found[name] = here
        if overflow(page) > 0:
            found[f"{name}, wide"] = overflow(page)
    assert found == {}
