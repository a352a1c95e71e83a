"""Every view in both themes, wide and on a phone: axe finds nothing, nothing scrolls sideways, nothing is reported.

All of axe's rules are tried once a view, on a phone and in the dark. What the theme and the width change (contrast, the
size of targets, regions that scroll) is tried again, wide and in the light.
"""

import pytest
from playwright.sync_api import Page, expect
from view_pages import VIEWS, Look, Site, faults, overflow

LIGHT = ["color-contrast", "target-size", "scrollable-region-focusable"]


def _audit(page: Page, found: dict[str, list[str]], name: str, rules: list[str] | None = None) -> None:
    if here := faults(page, rules):
        found.setdefault(name, []).extend(here)
    if (wide := overflow(page)) > 0:
        found.setdefault(name, []).append(f"{wide} px wider than the window")


@pytest.mark.parametrize("name", VIEWS)
def test_axe_finds_nothing(name: str, looking: Look, site: Site) -> None:
    parts, query, shown = VIEWS[name]
    asked = {key: site.ids.get(str(value), value) for key, value in query.items()}
    page = looking(site.at(*parts, act=True, **asked), theme="dark", width=390, height=844, audited=True)
    found: dict[str, list[str]] = {}
    expect(page.locator(shown).first).to_be_visible()
    _audit(page, found, "dark, on a phone")
    page.set_viewport_size({"width": 1280, "height": 600})
    page.emulate_media(color_scheme="light")
    expect(page.locator('html[data-theme="light"]')).to_have_count(1)
    expect(page.locator(shown).first).to_be_visible()
    _audit(page, found, "light, wide", LIGHT)
    assert found == {}


def test_the_dialogs_too(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "game", k=2, act=True), theme="dark", width=390, height=844, audited=True)
    found: dict[str, list[str]] = {}
    for key in ("?", "f"):
        expect(page.locator(".action")).to_be_visible()
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        _audit(page, found, key)
        page.keyboard.press("Escape")
    assert found == {}


def test_each_page_has_a_title_of_its_own(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "game"))
    expect(page).to_have_title("Make 24 out of 3, 3, 8 and 8, using each number once. · refold")
    for parts, title in {
        (): "Runs",
        ("set", "nightly"): "Set nightly",
        ("evaluation", "baseline"): "Evaluation baseline",
        ("evaluation", "baseline", "tuned"): "Evaluation baseline and tuned",
        ("family", "game"): f"Family {site.ids['game'][-5:]}",
        ("compare", "game", "fork"): f"Compare {site.ids['game'][-5:]} and {site.ids['fork'][-5:]}",
        ("nowhere",): "No such page",
    }.items():
        page.goto(site.at(*parts))
        expect(page).to_have_title(f"{title} · refold")


def test_paper_has_each_part_at_its_whole_length_in_ink(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "research", k=0, act=True), theme="dark")
    expect(page.locator(".tool[open]").first).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 28, 31)"
    assert page.evaluate("[...document.querySelectorAll('.btn')].filter((each) => each.checkVisibility()).length") == 0
    bodies = page.evaluate(
        "[...document.querySelectorAll('.pane > .body')].map((e) => [e.scrollHeight, e.clientHeight])"
    )
    assert [whole for whole, shown in bodies if whole > shown + 1] == []


GROUND = """() => {
    const canvas = document.querySelector("canvas.over")
    const drawn = canvas?.getContext("2d").getImageData(canvas.width - 8, 2, 1, 1).data
    return drawn ? `${drawn[0]} ${drawn[1]} ${drawn[2]}` : ""
}"""
"""The colour behind the overview's bars; empty before it is drawn."""
DARK, LIGHT_GROUND = "17 18 21", "244 244 242"


def _wait_for_ground(page: Page, colour: str) -> None:
    page.wait_for_function(f"(colour) => ({GROUND})() === colour", arg=colour)


def test_drawings_have_the_theme_of_the_system_and_of_paper(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=7), theme="dark")
    _wait_for_ground(page, DARK)
    page.emulate_media(media="print")
    _wait_for_ground(page, LIGHT_GROUND)
    page.emulate_media(media="screen")
    _wait_for_ground(page, DARK)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(GROUND) == LIGHT_GROUND, "the browser takes its picture right after the event"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(color_scheme="light")
    _wait_for_ground(page, LIGHT_GROUND)
    page.keyboard.press("d")
    _wait_for_ground(page, DARK)


def test_the_bar_on_paper_is_in_line_with_the_head(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=7))
    expect(page.locator("h1")).to_be_visible()
    page.emulate_media(media="print")
    brand, head = page.locator(".brand").bounding_box(), page.locator("h1").bounding_box()
    assert brand is not None
    assert head is not None
    assert brand["x"] == head["x"]


@pytest.mark.parametrize("size", [(640, 430), (844, 390)])
def test_a_low_window_has_room_for_a_run(looking: Look, site: Site, size: tuple[int, int]) -> None:
    width, height = size
    page = looking(site.at("run", "research", k=1), width=width, height=height)
    expect(page.locator(".turn.now")).to_contain_text("The time doubles")
    assert page.evaluate("scrollY") == 0
    assert overflow(page) <= 0
    page.mouse.move(20, 120)
    page.mouse.wheel(0, 2000)
    shown = page.locator(".pane.on > .body, .pane:not(.steps) > .body").locator("visible=true").first
    page.wait_for_function("() => scrollY > 0")
    box = shown.bounding_box()
    assert box is not None
    assert box["height"] > height / 2
    assert box["y"] + box["height"] <= height


def test_the_search_of_a_run_does_not_cover_where_it_is(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "research"), width=800)
    expect(page.locator("#find")).to_be_visible()
    crumbs, search = page.locator(".crumbs").bounding_box(), page.locator("#find").bounding_box()
    assert crumbs is not None
    assert search is not None
    assert crumbs["x"] + crumbs["width"] <= search["x"]
