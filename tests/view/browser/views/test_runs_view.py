"""The list of runs: searched, sorted, filtered, unfolded, selected; with the mouse, and by keys alone."""

import re

from playwright.sync_api import Page, expect
from view_pages import Look, Site


def titles(page: Page) -> list[str]:
    """What the lines call their runs, from top to bottom."""
    return [text.strip() for text in page.locator(".run-title > a").all_inner_texts()]


def test_families_are_folded_and_unfold_by_keys(looking: Look, site: Site) -> None:
    page = looking(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    page.keyboard.press("j")
    row = page.locator(f'[data-line="{site.ids["search"]}"]')
    for _ in range(12):
        if row.evaluate("row => row === document.activeElement"):
            break
        page.keyboard.press("j")
    expect(row).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(row).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".run-row.child")).to_have_count(13)
    assert "8 / 3" in titles(page)
    assert "no solution" in page.locator(".run-row.child").first.inner_text()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f'[data-line="{site.ids["search"]}~0.0"]')).to_be_focused()
    page.reload()
    expect(page.locator(".run-row.child")).to_have_count(13)
    page.keyboard.press("j")
    page.locator(f'[data-line="{site.ids["search"]}"]').focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".run-row.child")).to_have_count(0)


def test_a_search_and_filters_let_through_what_fits(looking: Look, site: Site) -> None:
    page = looking(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    page.keyboard.press("/")
    page.keyboard.type("links steps>100")
    expect(page.locator(".run-row")).to_have_count(1)
    assert "q=links" in page.url
    expect(page.locator(".tray")).to_contain_text("383 steps")
    page.get_by_label("Search runs").fill("nothing like that")
    expect(page.get_by_text("No run fits")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(page.locator(".run-row")).to_have_count(10)
    page.get_by_role("button", name=re.compile("^waiting")).click()
    expect(page.locator(".run-row")).to_have_count(1)
    page.get_by_role("button", name=re.compile("^all")).click()
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("up to").first.fill("3")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="No longer steps up to 3")).to_be_visible()
    assert "max_steps=3" in page.url


def test_a_head_sorts(looking: Look, site: Site) -> None:
    page = looking(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    page.get_by_role("button", name="Steps").click()
    head = page.get_by_role("columnheader", name="Steps")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".run-row").first).to_contain_text("383")
    page.get_by_role("button", name="Steps").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page.locator(".run-row").last).to_contain_text("383")


def test_two_that_are_selected_are_added_up_and_compared(looking: Look, site: Site) -> None:
    page = looking(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    for name in ("links", "stopped"):
        page.locator(f'[data-line="{site.ids[name]}"]').focus()
        page.keyboard.press("x")
    tray = page.locator(".tray")
    expect(tray).to_contain_text("2 selected")
    expect(tray).to_contain_text("438 steps")
    page.keyboard.press("c")
    expect(page.get_by_role("heading", name=re.compile("First difference"))).to_be_visible()
    page.go_back()
    expect(tray).to_contain_text("2 selected")
    page.get_by_role("button", name="Clear").click()
    expect(tray).to_contain_text("10 runs")


def test_enter_opens_the_run(looking: Look, site: Site) -> None:
    page = looking(site.at(q="roman"))
    expect(page.locator(".run-row")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/run/{site.ids['agent']}*")
