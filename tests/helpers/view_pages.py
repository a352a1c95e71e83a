"""What the tests of the page share: where its views are, and how accessibility is checked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

Look = Callable[..., Page]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass
class Site:
    """Runs that are served: their ids by name, and where the page is."""

    folder: Path
    ids: dict[str, str]
    address: str
    token: str

    def at(self, *parts: str, act: bool = False, **query: object) -> str:
        """The address of a view; a part that is the name of a run stands for its id."""
        path = "/".join(quote(self.ids.get(part, part), safe="") for part in parts)
        asked = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
        return f"{self.address}/{f'?token={self.token}' if act else ''}#/{path}{'?' if asked else ''}{asked}"


def faults(page: Page) -> list[str]:
    """What axe finds on a page: rules of WCAG A and AA, and best practice."""
    found = Axe().run(page, options={"runOnly": RULES})
    return [
        f"{each['id']}: {node['target']} {node['html'][:160]}"
        for each in found.response["violations"]
        for node in each["nodes"][:3]
    ]


def overflow(page: Page) -> int:
    """How many pixels the page can be scrolled sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
