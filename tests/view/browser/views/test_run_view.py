"""The Run view: its parts follow one step, by keys and by address; only rows in sight are drawn."""

import re
from urllib.parse import parse_qs

from playwright.sync_api import Page, Request, expect
from view_pages import Look, Site

from refold.traces import Trace

ROWS_MOST = 120
"""Rows of the list of steps that are drawn at once, in a window of 860 px; the run has more."""


def know_all(page: Page, site: Site, name: str) -> None:
    """Wait until the page knows all steps of a run: its keys lead to those that it knows."""
    steps = len(Trace.load(site.folder / f"{site.ids[name]}.trace.jsonl").steps)
    expect(page.get_by_role("slider", name="Step")).to_have_attribute("aria-valuemax", str(steps - 1))


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
    page.locator(".hist").get_by_role("button", name=re.compile("changes$")).click()
    listed = page.locator(".hist-list button:not(.btn)")
    expect(listed).to_have_count(100)
    page.locator(".hist-list").get_by_role("button", name="Show 100 more").click()
    expect(listed).to_have_count(200)
    page.locator(".hist-list button", has_text="@150").click()
    expect(page.locator('.st[aria-current="step"] .i')).to_have_text("150")
    page.keyboard.press("Escape")
    expect(page.locator(".hist")).to_have_count(0)


def test_the_place_in_a_history_is_one_of_its_steps(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=11, path="/sections/*"))  # a step of three pages may change three of them
    expect(page.locator(".hist")).to_contain_text(re.compile("[0-9]+ / [0-9]+"))
    expect(page.locator(".hist")).not_to_contain_text(re.compile("reading|% read"))  # keys go to what is known
    know_all(page, site, "links")
    page.keyboard.press("End")
    for _ in range(3):
        page.keyboard.press("[")
    page.keyboard.press("]")
    page.keyboard.press("]")
    expect(page.get_by_role("button", name="Next change")).to_be_disabled()
    at, of = re.findall("([0-9]+) / ([0-9]+)", page.locator(".hist").inner_text())[0]
    assert at == of


def test_a_change_leads_to_the_step_that_wrote_the_value(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=5, state="all"))
    page.locator(".state .at", has_text="@4").or_(page.locator(".state .at", has_text="@5")).first.click()
    expect(page.locator('.st[aria-current="step"]')).to_be_visible()


def test_what_the_end_wrote_leads_to_the_end(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", path="/stop_reason"))
    row = page.locator(".state .tr", has=page.locator('.kx[title="/stop_reason"]'))
    expect(row.locator(".at")).to_have_text("end")
    page.keyboard.press("j")
    page.get_by_role("button", name="Next change").click()
    expect(page.locator(".summary")).to_be_visible()
    expect(page.get_by_role("heading", name="State at the end")).to_be_visible()


def test_the_last_step_has_used_what_the_run_has_used(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    time = page.locator(".budget").filter(has_text="Time").locator("dt b")
    know_all(page, site, "links")
    whole = page.locator(".facts b").first.inner_text()
    expect(time).to_have_text(whole)
    page.keyboard.press("End")
    expect(page.locator('.st[aria-current="step"]')).to_be_visible()
    expect(time).to_have_text(whole)


def test_only_rows_in_sight_are_drawn(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    expect(page.locator(".st").first).to_be_visible()
    know_all(page, site, "links")
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
    hits, mark = page.locator(".hits").bounding_box(), page.locator(".hit mark").first.bounding_box()
    assert hits is not None
    assert mark is not None
    assert mark["x"] + mark["width"] < hits["x"] + hits["width"]  # what was looked for is not cut off
    page.keyboard.press("Enter")
    expect(page.locator('.hit[aria-current="true"]')).to_be_visible()
    expect(page.locator('.st[aria-current="step"]')).to_be_visible()


def test_the_timeline_is_zoomed_and_dragged(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links", k=200))
    slider = page.get_by_role("slider", name="Step")
    shown = page.locator(".time .legend")
    expect(shown).to_contain_text("120–279 of 383")
    page.keyboard.press("+")
    expect(shown).to_contain_text("160–239 of 383")
    page.keyboard.press("0")
    expect(shown).to_contain_text("0–382 of 383")
    page.keyboard.press("+")
    page.keyboard.press("+")
    over, window = page.locator(".time .over").bounding_box(), page.locator(".time .win").bounding_box()
    assert over is not None
    assert window is not None
    page.mouse.move(over["x"] + over["width"] * 0.25, over["y"] + 10)
    page.mouse.down()
    expect(slider).to_have_attribute("aria-valuenow", "95")
    page.mouse.move(over["x"] + over["width"] * 0.75, over["y"] + 10, steps=4)
    page.mouse.up()
    expect(shown).to_contain_text("239–334 of 383")
    expect(slider).to_have_attribute("aria-valuenow", "95")  # dragging moves the window, and not the cursor
    page.mouse.click(window["x"] + window["width"] * 0.5, window["y"] + 30)
    expect(slider).to_have_attribute("aria-valuenow", "287")
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Shift")
    expect(shown).not_to_contain_text("239–334")


def test_a_failed_run_opens_at_the_step_that_failed(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "failed"))
    expect(page.get_by_role("heading", name="Step 0", exact=True)).to_be_visible()
    expect(page.locator(".step-head")).to_contain_text("the run failed here")
    expect(page.get_by_label("Step", exact=True).locator("pre.bad").first).to_contain_text("'/guide/nowhere'")
    expect(page.locator('.st[aria-current="step"].bad')).to_be_visible()
    expect(page.get_by_role("button", name="1 error")).to_be_visible()


def test_the_summary_has_the_figures_of_the_whole_run(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "stopped", k="s"))
    used = page.locator(".budget dt b")
    expect(used).to_have_count(4)
    _, time, tokens, _ = used.all_inner_texts()
    assert page.locator(".facts b").all_inner_texts()[:2] == [time, tokens]


def test_a_branch_names_each_candidate_by_its_place_and_move(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "search", k=0))
    expect(page.locator(".cand")).to_have_count(15)
    shown = [" ".join(text.split()) for text in page.locator(".cand").all_inner_texts()]
    assert shown[7].startswith("7 combine 8 / 3")
    assert shown[8].startswith("7.0 3 - 8/3")
    assert shown[9].startswith("7.0.0 8 / 1/3")
    assert shown[10].startswith("8 combine 3 / 8")
    expect(page.locator(".cand.chosen")).to_contain_text("7.0.0")


def test_a_key_that_finds_nothing_says_so(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    expect(page.locator(".summary")).to_be_visible()
    page.keyboard.press("E")
    expect(page.locator(".facts")).to_contain_text("No earlier error")
    page.keyboard.press("j")
    expect(page.locator(".facts")).not_to_contain_text("No earlier error")


def test_a_dialog_goes_with_the_run_that_it_belongs_to(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "links"))
    page.get_by_role("button", name="Fork from here").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("location.hash = '#/bogus/page'")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()


def test_the_steps_of_a_fork_count_on_from_its_source(looking: Look, site: Site) -> None:
    page = looking(site.at("run", "fork", k="s"))
    steps = page.locator(".budget", has_text="Steps")
    expect(steps).to_contain_text("3 before the fork")
    own = page.locator(".st").count() - 1  # the summary is a row, too
    expect(steps.locator("b")).to_have_text(str(3 + own))
    page.keyboard.press("j")
    expect(steps.locator("b")).to_have_text("4")


def questions(page: Page) -> list[str]:
    """The questions that the page asks from now on, one entry a request; events are none."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/api/" in request.url and "/api/events" not in request.url:
            asked.append(request.url.split("/api/")[1])

    page.on("request", note)
    return asked


def test_a_run_is_opened_in_two_requests_and_a_jump_is_one(looking: Look, site: Site) -> None:
    page = looking("about:blank", elsewhere=True)
    last: dict[str, str | float | bool] = {"id": site.ids["links"], "from": "0", "mode": "E"}
    assert page.request.get(f"{site.address}/api/find", params=last).ok  # answered once the index is complete
    asked = questions(page)
    page.goto(site.at("run", "links", k=20))
    expect(page.locator(".step-head")).to_be_visible()
    expect(page.locator(".state .tr").first).to_be_visible()
    expect(page.locator('.st[aria-current="step"] .w')).not_to_be_empty()
    assert [each.split("?")[0] for each in asked] == ["run", "several"]
    together = [each.split("?")[0] for each in parse_qs(asked[1].partition("?")[2])["ask"]]
    assert sorted(together) == ["changes", "columns", "columns", "step", "steps"]
    asked.clear()
    page.locator("#go-to").fill("350")
    page.locator("#go-to").press("Enter")
    expect(page.get_by_role("heading", name="Step 350", exact=True)).to_be_visible()
    expect(page.locator(".step-head")).to_be_visible()
    expect(page.locator('.st[aria-current="step"] .w')).not_to_be_empty()
    expect(page.locator('.st[aria-current="step"]')).to_be_in_viewport()
    assert [each.split("?")[0] for each in asked] == ["several"]
    assert page.locator(".st").count() < 80, "only the rows in sight are drawn"
    asked.clear()
    page.keyboard.press("k")
    expect(page.get_by_role("heading", name="Step 349", exact=True)).to_be_visible()
    expect(page.locator(".step-head")).to_be_visible()
    (one,) = asked
    assert sorted(each.split("?")[0] for each in parse_qs(one.partition("?")[2])["ask"]) == ["changes", "step"]


def test_a_drawing_asks_the_browser_for_no_layout(looking: Look, site: Site) -> None:
    """What the page asks of the browser during a jump, counted: each of these would lay out the whole page at once."""
    page = looking(site.at("run", "links", k=20))
    expect(page.locator(".step-head")).to_be_visible()
    page.evaluate(
        """() => {
          window.laidOut = 0
          const counted = (proto, name) => {
            const { get, value, set } = Object.getOwnPropertyDescriptor(proto, name)
            const count = f => function (...given) { window.laidOut++; return f.apply(this, given) }
            const made = value ? { value: count(value) } : { get: count(get), set }
            Object.defineProperty(proto, name, { ...made, configurable: true })
          }
          counted(Element.prototype, 'getBoundingClientRect')
          counted(Element.prototype, 'scrollTop')
          counted(Element.prototype, 'clientHeight')
          counted(window, 'getComputedStyle')
          const field = document.querySelector('#go-to')
          field.value = '300'
          field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))
        }"""
    )
    expect(page.get_by_role("heading", name="Step 300", exact=True)).to_be_visible()
    expect(page.locator(".step-head")).to_be_visible()
    assert page.evaluate("window.laidOut") <= 2, "the list's own scroll event may ask where it is"
