"""The list of runs: searched, sorted, filtered, unfolded, selected; with the mouse, and by keys alone."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from view_pages import Look, Site
from view_server import serving

SETTLE_MS = 400
"""How long the page waits before it asks for a list anew."""


def titles(page: Page) -> list[str]:
    """What the lines call their runs, from top to bottom."""
    return [text.strip() for text in page.locator(".run-title > a").all_inner_texts()]


def test_families_are_folded_and_unfold_by_keys(looking: Look, site: Site) -> None:
    page = looking(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    expect(page.locator(f'[data-line="{site.ids["game"]}"] .fold')).to_contain_text("2 forks")
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
    expect(page.get_by_role("button", name="all 0", exact=True)).to_be_visible()
    page.get_by_label("Search runs").fill("steps>abc foo:bar")
    expect(page.get_by_text("after steps> there must be a number")).to_be_visible()
    expect(page.get_by_text("“foo:bar” is read as a word: the filters are status:, reason:")).to_be_visible()
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


def test_what_is_typed_in_a_filter_stays_when_the_list_changes(looking: Look, site: Site) -> None:
    page = looking(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    page.get_by_text("Filter", exact=True).click()
    field = page.get_by_label("up to").first
    field.press_sequentially("3")
    page.evaluate("location.hash = '#/?sort=steps'")
    expect(page.get_by_role("columnheader", name="Steps")).to_have_attribute("aria-sort", "descending")
    expect(field).to_have_value("3")
    field.press("Enter")
    page.get_by_role("button", name="No longer steps up to 3").click()
    expect(field).to_have_value("")


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


def test_a_row_keeps_its_columns_apart_and_the_form_has_no_empty_filter(looking: Look, site: Site) -> None:
    page = looking(site.at(), width=1440)
    expect(page.locator(".run-row")).to_have_count(10)
    row = page.locator(f'[data-line="{site.ids["stopped"]}"]')
    status, shape = row.locator(".status").bounding_box(), row.locator(".shape").bounding_box()
    assert status is not None
    assert shape is not None
    assert status["x"] + status["width"] <= shape["x"]
    expect(page.locator(f'[data-line="{site.ids["research"]}"] .c-cost')).to_contain_text("not known")
    page.get_by_text("Filter", exact=True).click()
    expect(page.locator(".popover fieldset")).not_to_have_count(0)
    expect(page.locator(".popover fieldset:not(:has(input, select))")).to_have_count(0)
    page.get_by_label("Any tag").select_option("nightly")
    expect(page.locator(".run-row")).to_have_count(3)
    page.get_by_role("group", name="Time in seconds").get_by_label("from").fill("60")
    page.keyboard.press("Tab")
    expect(page.locator(".run-row")).to_have_count(2)


def test_the_list_and_each_filter_are_asked_for_once(looking: Look, site: Site) -> None:
    page = looking("about:blank", elsewhere=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    with page.expect_response(lambda answer: "/api/events" in answer.url):
        page.goto(site.at())
    expect(page.locator(".run-row")).to_have_count(10)
    page.get_by_label("Search runs").fill("links steps>100")
    expect(page.locator(".run-row")).to_have_count(1)
    page.get_by_label("Search runs").fill("")
    expect(page.locator(".run-row")).to_have_count(10)
    page.get_by_role("button", name=re.compile("^waiting")).click()
    expect(page.locator(".run-row")).to_have_count(1)
    page.wait_for_timeout(2 * SETTLE_MS)  # a list that were asked for anew would be asked for by then
    assert sum("/api/runs?" in url for url in asked) == 4
    assert sum("/api/events" in url for url in asked) == 1, "one stream of events for all lists"


def test_a_change_between_the_answer_and_the_stream_is_not_missed(looking: Look, acted: Site) -> None:
    """The stream begins with a mark: if the list is older than that, it is asked for again."""
    page = looking("about:blank", elsewhere=True)
    page.route("**/api/events*", lambda route: route.abort())  # an event stream tries again by itself
    page.goto(acted.at())
    rows = page.locator(".run-row")
    expect(rows.first).to_be_visible()
    before = rows.count()
    source = acted.folder / f"{acted.ids['links']}.trace.jsonl"  # the copy of a fork would be folded into its family
    copy = source.with_name(f"copy-of-{source.name}")
    copy.write_bytes(source.read_bytes())
    page.unroute("**/api/events*")
    expect(rows).to_have_count(before + 1)
    copy.unlink()
    expect(rows).to_have_count(before)


SHIFTS = """
shifted = []
new PerformanceObserver((list) => {
    for (const { sources } of list.getEntries())
        for (const { node } of sources) if (!node?.closest?.(".set-card")) shifted.push(node?.className ?? "")
}).observe({ type: "layout-shift", buffered: true })
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_once_the_list_is_drawn(looking: Look, acted: Site, tmp_path: Path, width: int) -> None:
    shutil.copytree(acted.folder, tmp_path / "runs", ignore=shutil.ignore_patterns(".refold-index*"))
    with serving(tmp_path / "runs") as server:
        page = looking("about:blank", elsewhere=True, width=width)
        page.add_init_script(SHIFTS)
        held: list[Route] = []
        page.route(re.compile(r"/api/evaluations\?$"), lambda route: held.append(route))  # the samples take their time
        page.goto(f"http://127.0.0.1:{server.port}/")
        cards = page.locator(".ev-card")
        expect(page.locator(".ev-card[aria-busy]")).to_have_count(2 if width > 760 else 1)
        expect(page.locator(".run-row").first).to_be_visible()
        while not held:
            page.wait_for_timeout(20)
        held[0].continue_()
        expect(cards.first).to_contain_text("0.667 passed")
        expect(page.locator(".ev-card[aria-busy]")).to_have_count(0)
        assert page.evaluate("shifted") == []


def test_a_folder_that_has_gone_is_no_empty_folder(looking: Look, acted: Site, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    with serving(folder) as server:
        page = looking(f"http://127.0.0.1:{server.port}/")
        empty, gone = page.get_by_text("No runs in this folder yet"), page.get_by_text(f"{folder} does not exist")
        expect(empty).to_be_visible()
        shutil.rmtree(folder)
        expect(gone).to_be_visible()
        shutil.copytree(acted.folder, folder, ignore=shutil.ignore_patterns(".refold-index*"))
        expect(page.locator(".run-row").first).to_be_visible()
        expect(page.locator(".set-card").first).to_be_visible()
        shutil.rmtree(folder)
        expect(gone).to_be_visible()
        expect(page.locator(".set-card")).to_have_count(0)
