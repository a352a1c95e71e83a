"""Figures and texts that a page cannot show as what they are meant to be: they are shown, and nothing else is lost."""

from collections.abc import Iterator
from typing import Any

import pytest
from hostile_traces import said, write_run
from playwright.sync_api import expect
from view_pages import Look
from view_server import serving

AGENT = "refold.modules.agent.state:AgentState"
LATE = 1e300
TURN = "\u202e"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("strange")
    write_run(folder / "good.trace.jsonl", {}, [])
    for name, at in (("late", LATE), ("early", -LATE)):
        asked: Any = {"id": "w", "prompt": "which?", "kind": "wait", "schema": None, "deadline": abs(at)}
        waits: list[dict[str, Any]] = [
            {"kind": "decide", "decision": {"mode": "wait"}},
            {"kind": "wait", "requests": [asked]},
        ]
        again = {"kind": "resume", "attempt": 2, "at": at}
        write_run(folder / f"{name}.trace.jsonl", {}, [again], waits, at=at)
    deep = {"role": "assistant", "content": ">" * 1_990 + " deep"}
    others = [
        {"role": "user", "content": text}
        for text in ("- " * 3_000 + "list", "*a_" * 3_000, ">" * 150 + " parsed", ">" * 90 + " quoted", "**after**")
    ]
    write_run(folder / "deep.trace.jsonl", {"messages": []}, said(deep), said(*others), state=AGENT)
    turned = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": f"rm{TURN}gnp.exe"}}]}
    write_run(folder / "turned.trace.jsonl", {"messages": []}, said(turned), state=AGENT, module=f"m:{TURN}M")
    with serving(folder) as server:
        yield f"http://127.0.0.1:{server.port}"


def test_a_time_beyond_all_dates_takes_no_row_with_it(looking: Look, address: str) -> None:
    page = looking(address)
    expect(page.locator(".run-row")).to_have_count(5)
    expect(page.locator(".run-row .c-what")).to_have_count(5)
    for name in ("late", "early"):
        page.goto(f"{address}/#/run/{name}?k=-1")
        expect(page.get_by_role("heading", name="Summary")).to_be_visible()
        expect(page.locator("main")).to_contain_text("which?")
        expect(page.locator("main")).to_contain_text(f"until {LATE:g} s after 1970")


def test_a_text_that_nests_too_deeply_is_shown_as_it_is(looking: Look, address: str) -> None:
    page = looking(f"{address}/#/run/deep?k=0")
    expect(page.locator(".chat")).to_contain_text(">" * 1_990 + " deep")
    expect(page.locator(".chat strong", has_text="after")).to_be_visible()
    # The parser can go this deep, and 1,990 deep as well once the browser has compiled it: a limit of our own decides.
    expect(page.locator(".chat")).to_contain_text(">" * 150 + " parsed")
    expect(page.locator(".chat blockquote p")).to_have_text(["quoted"])
    expect(page.locator(".steps")).to_contain_text("Summary")


def test_a_sign_that_turns_the_line_round_is_named(looking: Look, address: str) -> None:
    page = looking(address)
    expect(page.get_by_label("Any module")).to_contain_text("⟨U+202E⟩M")
    assert TURN not in page.locator("body").inner_text()
    page.goto(f"{address}/#/run/turned?k=0")
    expect(page.locator(".tool b").first).to_have_text("rm⟨U+202E⟩gnp.exe")
    assert TURN not in page.locator("body").inner_text()
