"""The exported file, opened from the disk: the run page works, its policy is in force, nothing is asked for."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from view_pages import Site

from refold.view import bundle
from refold.view.exported import write_page

CLIENT_MOST = 150_000
GAME_MOST = 300_000


@pytest.fixture
def opened(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 860}, bypass_csp=False)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))
    yield page
    page.close()
    assert wrong == []


def export(tmp_path: Path, trace: Path) -> Path:
    out = tmp_path / "run.html"
    with out.open("wb") as file:
        write_page([trace], file)
    return out


def test_a_run_is_walked_through(opened: Page, site: Site, tmp_path: Path) -> None:
    trace = site.folder / f"{site.ids['links']}.trace.jsonl"
    out = export(tmp_path, trace)
    opened.goto(out.as_uri())
    expect(opened.locator(".summary")).to_be_visible()
    opened.keyboard.press("j")
    expect(opened.get_by_role("heading", name="Step 0", exact=True)).to_be_visible()
    expect(opened.locator(".state .tr.mod").first).to_be_visible()
    opened.keyboard.press("t")
    expect(opened.locator(".state .kx", has_text="ahead")).to_be_visible()
    opened.locator("#find").fill("SECTION")
    expect(opened.locator(".hit").first).to_be_visible()


def test_its_policy_lets_no_foreign_script_run(browser: Browser, site: Site, tmp_path: Path) -> None:
    out = export(tmp_path, site.folder / f"{site.ids['game']}.trace.jsonl")
    page = browser.new_page()
    page.goto(out.as_uri())
    expect(page.locator(".summary")).to_be_visible()
    ran = page.evaluate(
        """async () => {
          const refused = new Promise((told) =>
            addEventListener("securitypolicyviolation", (event) => told(event.effectiveDirective)))
          const script = document.createElement("script")
          script.textContent = "window.ran = true"
          document.body.append(script)
          return [await refused, window.ran ?? false]
        }"""
    )
    page.close()
    assert ran == ["script-src-elem", False]


def test_the_game_of_24_is_small_and_all_of_the_client_is(site: Site, tmp_path: Path) -> None:
    out = export(tmp_path, site.folder / f"{site.ids['game']}.trace.jsonl")
    assert out.stat().st_size <= GAME_MOST
    packed = gzip.compress((bundle.script() + bundle.sheet()).encode(), 9, mtime=0)
    assert len(packed) <= CLIENT_MOST
