"""Ten megabytes of text and many keys in a state: shown in part, found to their end, and the page stays quick."""

from collections.abc import Iterator

import pytest
from hostile_traces import read_docs, write_docs
from playwright.sync_api import expect
from shown_runs import png
from view_pages import Look, Site, overflow

LONG = 10_000_000
TEXT = "w " * (LONG // 2 - 4) + "The end."
KEYS = 100_000
NODES_MOST = 4_000
"""Elements of the page, whatever the state holds."""


@pytest.fixture(scope="module")
def large(acted: Site) -> Iterator[str]:
    docs = read_docs(acted.folder / f"{acted.ids['game']}.trace.jsonl")
    docs[0]["run_id"] = "large"
    picture = png(1200, 800)
    assert len(picture) > 4_000
    snapshot = next(doc for doc in docs if doc["kind"] == "snapshot")
    snapshot["state"]["metadata"] = {"picture": picture, "text": TEXT, "many": {f"key {i}": i for i in range(KEYS)}}
    path = acted.folder / "large.trace.jsonl"
    write_docs(path, docs)
    yield "large"
    path.unlink()


def test_the_page_shows_a_part_and_asks_for_more(looking: Look, acted: Site, large: str) -> None:
    page = looking(acted.at("run", large, k=0, state="all"))
    many = page.locator(".state .tr", has=page.get_by_role("button", name="many", exact=True))
    expect(many).to_contain_text("key 0, key 1")  # once the server has read it
    page.get_by_role("button", name="Unfold many").click()
    more = page.get_by_role("button", name="200 more of 100,000")
    expect(page.locator(".state .kx", has_text="key 199")).to_be_visible()
    more.click()
    expect(page.locator(".state .kx", has_text="key 399")).to_be_visible()
    page.get_by_role("button", name="Fold many").click()
    page.get_by_role("button", name="Unfold picture").click()
    expect(page.locator(".state img")).to_have_js_property("naturalWidth", 1200)
    page.get_by_role("button", name="Fold picture").click()
    page.get_by_role("button", name="Unfold text").click()
    expect(page.locator(".state .big")).to_contain_text("2,000 of 10,000,000 characters")
    page.locator(".state").get_by_role("button", name="Show 65,536 more").click()
    expect(page.locator(".state .big")).to_contain_text("67,536 of 10,000,000 characters")
    page.locator(".state").get_by_role("button", name="Find in it").click()
    page.get_by_label("Find in this text").fill("the END")
    page.keyboard.press("Enter")
    expect(page.locator(".state mark")).to_have_text("The end")
    expect(page.locator(".state").get_by_role("status")).to_contain_text(f"at character {LONG - 7:,} of {LONG:,}")
    page.get_by_label("Find in this text").fill("nowhere")
    page.keyboard.press("Enter")
    expect(page.locator(".state").get_by_role("status")).to_contain_text("It is not in this text")
    with page.expect_download() as saved:
        page.locator(".state").get_by_role("button", name="Save").click()
    assert saved.value.suggested_filename == "text.txt"
    assert saved.value.path().read_text(encoding="utf-8") == TEXT
    assert overflow(page) <= 0
    assert page.locator("*").count() < NODES_MOST
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Step 1", exact=True)).to_be_visible()
