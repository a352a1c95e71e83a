"""Every view in both themes and on a phone: axe finds nothing, nothing scrolls sideways, nothing is reported."""

import pytest
from playwright.sync_api import expect
from view_pages import Look, Site, faults, overflow

VIEWS: dict[str, tuple[tuple[str, ...], dict[str, object], str]] = {
    "runs": ((), {}, ".run-row"),
    "runs, unfolded": ((), {"open": "search"}, ".run-row.child"),
    "no run": ((), {"q": "nothing like it"}, ".say"),
    "conversation": (("run", "research"), {"k": 0}, ".tool[open]"),
    "waiting": (("run", "waiting"), {}, ".ask"),
    "compare": (("compare", "game", "fork"), {}, ".dt"),
    "compare others": (("compare", "links", "stopped"), {}, ".dt"),
    "family": (("family", "search"), {}, ".node"),
    "forks": (("family", "game"), {}, ".node"),
    "states": (("states",), {}, ".frame"),
}


@pytest.mark.parametrize(("theme", "width"), [("dark", 390)])
def test_axe_finds_nothing(looking: Look, site: Site, theme: str, width: int) -> None:
    page = looking(site.at(act=True), theme=theme, width=width, height=844, audited=True)
    found: dict[str, list[str]] = {}
    for name, (parts, query, shown) in VIEWS.items():
        asked = {key: site.ids.get(str(value), value) for key, value in query.items()}
        page.goto(site.at(*parts, act=True, **asked))
        expect(page.locator(shown).first).to_be_visible()
        if here := faults(page):
            found[name] = here
        if (wide := overflow(page)) > 0:
            found.setdefault(name, []).append(f"{wide} px wider than the window")
    assert found == {}
