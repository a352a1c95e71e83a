"""On a phone, nothing is cut, nothing sticks out of the page, and what is to be touched is at least 24 px large."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from view_pages import VIEWS, Look, Site

CLIPPED = (Path(__file__).parent / "clipped.js").read_text()
WIDTHS = (390, 320)


def misfits(page: Page) -> list[str]:
    found: list[str] = page.evaluate(CLIPPED)
    return found


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_fits(name: str, looking: Look, site: Site) -> None:
    parts, query, shown = VIEWS[name]
    asked = {key: site.ids.get(str(value), value) for key, value in query.items()}
    page = looking(site.at(*parts, act=True, **asked), theme="dark", width=WIDTHS[0], height=844)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        expect(page.locator(shown).first).to_be_visible()
        assert misfits(page) == [], width


@pytest.mark.parametrize("tab", ["state", "steps"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_other_parts_of_a_run_fit(tab: str, width: int, looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", act=True, k=7, tab=tab, path="/checked"), width=width, height=844)
    expect(page.locator(".tr" if tab == "state" else ".st").first).to_be_visible()
    assert misfits(page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_dialogs_fit(width: int, looking: Look, site: Site) -> None:
    page = looking(site.at("run", "game", k=2, act=True), width=width, height=844)
    for open_it in ("Keys", "Fork from here", "Verify"):
        expect(page.locator(".action")).to_be_visible()
        page.get_by_role("button", name=open_it).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert misfits(page) == [], open_it
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_search_in_a_run_has_its_own_row(width: int, looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=7), width=width, height=844)
    field, bar = page.locator("#find"), page.locator(".bar")
    field.fill("budgets")
    expect(page.locator(".hit").first).to_be_visible()
    there, above = field.bounding_box(), bar.bounding_box()
    assert there is not None
    assert above is not None
    assert there["width"] > 0.9 * (width - 24)
    assert there["y"] >= above["y"] + above["height"]
    assert misfits(page) == []


def test_cards_above_the_list_fold_beyond_a_few(looking: Look, site: Site) -> None:
    page = looking(site.at(), width=390, height=844)
    cards = page.get_by_role("region", name="Evaluations").locator(".set-card")
    more = page.get_by_role("button", name="Show 1 more evaluation")
    expect(more).to_be_visible()
    expect(cards).to_have_count(1)
    more.click()
    expect(cards).to_have_count(2)
    assert misfits(page) == []
    page.get_by_role("button", name="Show fewer").click()
    expect(cards).to_have_count(1)
    page.set_viewport_size({"width": 1280, "height": 844})
    expect(cards).to_have_count(2)
    expect(more).to_have_count(0)


def test_a_phone_sorts_too(looking: Look, site: Site) -> None:
    page = looking(site.at(), width=390, height=844)
    steps = page.get_by_role("columnheader", name="Steps").get_by_role("button")
    expect(steps).to_be_in_viewport()
    steps.click()
    expect(page.get_by_role("columnheader", name="Steps")).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".run-row").first).to_contain_text("400 pages, 12 broken links")


def test_links_of_one_character_are_large_enough(looking: Look, site: Site) -> None:
    page = looking(site.at(open=site.ids["search"]), width=390, height=844)
    expect(page.locator(".run-row.child").first).to_be_visible()
    page.locator(".run-row.child .run-title > a").first.evaluate("(link) => void (link.textContent = '0')")
    assert misfits(page) == []
    page.goto(site.at("run", "search", k=0))
    expect(page.locator(".cand a").first).to_be_visible()
    assert misfits(page) == []
