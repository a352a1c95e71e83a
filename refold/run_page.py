"""The page of a run, embedded in a notebook.

`Trace.view` stands in a room that knows nobody above it, and the page is made far above, in `refold.view`. So the
facade, which may know both, registers the maker of the page here; nothing is imported until somebody asks for a page.
"""

import base64
from collections.abc import Callable
from typing import Any

PageMaker = Callable[[Any], str | None]
"""A function that returns a trace's page as one HTML document; None for a trace without a complete record."""
_makers: list[PageMaker] = []


def register_page_maker(maker: PageMaker) -> None:
    """Let traces show the page that `maker` makes.

    The maker that was registered last is used.
    """
    _makers.append(maker)


def page_of(trace: Any) -> str | None:
    """Return the page of a trace.

    Returns None if the trace has no complete record.
    """
    return _makers[-1](trace)


class RunView:
    """A run's page in a notebook.

    It is shown in its own frame, without access to the notebook. The frame may run the page's own script. It is of no
    origin (`sandbox` without `allow-same-origin`), so that a script can reach neither the notebook, nor its server,
    nor what the browser stores for either.
    """

    def __init__(self, run_id: str, page: str, height: int) -> None:
        self.run_id = run_id
        self.page = page
        self.height = int(height)

    def _repr_html_(self) -> str:
        # In a `srcdoc`, relative addresses are the notebook's: the page could not move between its own (`#/run/…`).
        page = base64.b64encode(self.page.encode("utf-8", "replace")).decode()
        return (
            f'<iframe sandbox="allow-scripts" src="data:text/html;charset=utf-8;base64,{page}" title="a run of refold" '
            f'style="width:100%;height:{self.height}px;border:1px solid rgba(128,128,128,.35)"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<RunView of {self.run_id}: {len(self.page):,} characters of HTML, shown in a notebook>"
