"""Figures and texts that a page cannot show as what they are meant to be: they are shown, and nothing else is lost."""

from collections.abc import Iterator
from typing import Any

import pytest
from hostile_traces import said, write_run
from playwright.sync_api import expect
from view_pages import Look
from view_server import serving

from refold.traces.printable import printable

AGENT = "refold.modules.agent.state:AgentState"
LATE = 1e300
TURN = "\u202e"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("strange")
    write_run(folder / "good.trace.jsonl", {}, [])
    waiting: list[dict[str, Any]] = [{"kind": "decide", "decision": {"mode": "wait"}}]
    for name, at in (("late", LATE), ("early", -LATE)):
        asked: Any = {"id": "w", "prompt": "which?", "kind": "wait", "schema": None, "deadline": abs(at)}
        waits = [*waiting, {"kind": "wait", "requests": [asked]}]
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
    past: dict[str, Any] = {"id": "w", "prompt": "which?", "kind": "wait", "schema": None, "deadline": 1}
    write_run(folder / "past.trace.jsonl", {}, [*waiting, {"kind": "wait", "requests": [past]}])
    many = [{"id": f"a{number}", "name": "look", "args": {}} for number in range(2_000)]
    write_run(folder / "many.trace.jsonl", {}, [{"kind": "decide", "decision": {"mode": "act", "actions": many}}])
    with serving(folder) as server:
        yield f"http://127.0.0.1:{server.port}"


def test_strange_figures_and_texts_take_nothing_with_them(looking: Look, address: str) -> None:
    page = looking(address)
    expect(page.locator(".run-row")).to_have_count(7)
    expect(page.locator(".run-row .c-what")).to_have_count(7)
    for name in ("late", "early"):
        page.goto(f"{address}/#/run/{name}?k=-1")
        expect(page.get_by_role("heading", name="Summary")).to_be_visible()
        expect(page.locator("main")).to_contain_text("which?")
        expect(page.locator("main")).to_contain_text(f"until {LATE:g} s after 1970")
    page.goto(f"{address}/#/run/deep?k=0")
    expect(page.locator(".chat")).to_contain_text(">" * 1_990 + " deep")
    expect(page.locator(".chat strong", has_text="after")).to_be_visible()
    # The parser can go this deep, and 1,990 deep as well once the browser has compiled it: a limit of our own decides.
    expect(page.locator(".chat")).to_contain_text(">" * 150 + " parsed")
    expect(page.locator(".chat blockquote p")).to_have_text(["quoted"])
    expect(page.locator(".steps")).to_contain_text("Summary")
    page.goto(address)
    expect(page.get_by_label("Any module")).to_contain_text("⟨U+202E⟩M")
    assert TURN not in page.locator("body").inner_text()
    page.goto(f"{address}/#/run/turned?k=0")
    expect(page.locator(".tool b").first).to_have_text("rm⟨U+202E⟩gnp.exe")
    assert TURN not in page.locator("body").inner_text()
    page.goto(f"{address}/#/run/past")
    expect(page.locator(".ask .since")).to_contain_text("the time to answer passed on 1/1/1970")
    page.goto(f"{address}/#/run/many?k=0")
    expect(page.get_by_role("heading", name="2,000 actions, of which the first 500 are here")).to_be_visible()
    expect(page.locator(".matrix button")).to_have_count(500)

    # the page names what a terminal escapes, and leaves what writing needs
    named = page.evaluate("""async () => {
      const { visible } = await import("/text.js")
      const all = Array.from({ length: 0x110000 }, (_, code) => code).filter((code) => code < 0xd800 || code > 0xdfff)
      return all.filter((code) => visible(String.fromCodePoint(code)) !== String.fromCodePoint(code))
    }""")
    escaped = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000 and printable(chr(code)) != chr(code)]
    assert {*escaped} - {*named} == {ord("\t"), ord("\n")}
    assert {*named} <= {*escaped}
    page.goto(address)
    needed = ["\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f\u200d\U0001f525", "\U0001f468\U0001f3fd\u200d\U0001f680"]
    needed += ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937"]
    smuggled = [
        "a\u200db",
        "a\u200cb",
        "\u200d",
        "\U0001f469\u200d",
        "\u0645\u200c\u200c\u062e",
        "\U0001f469\u200d\u200d\U0001f4bb",
    ]
    shown = page.evaluate("async (all) => all.map((await import('/text.js')).visible)", needed + smuggled)
    assert shown[: len(needed)] == needed
    assert all("\u27e8U+200" in each and "\u200d" not in each and "\u200c" not in each for each in shown[len(needed) :])
