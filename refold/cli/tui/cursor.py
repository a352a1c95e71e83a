"""The place in a run, and its moves, without drawing.

Page 0 is the summary, page k + 1 is step k, and the last page is the end, as in the plain replay.
"""

from collections.abc import Iterable, Iterator

from ...traces import Step, Trace
from ..commands.replay.pages import Pages

_RANK = {sign: rank for rank, sign in enumerate((" ", ".", "F", "B", "W", "E"))}


class Cursor:
    """A page of a replay, and the moves of keys."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.pages = Pages(trace)
        self.page = 0

    @property
    def last(self) -> int:
        """The number of the last page."""
        return len(self.pages) - 1

    @property
    def step(self) -> Step | None:
        """The step of the page; None on the first and last page."""
        return self.pages.step(self.page) if 0 < self.page < self.last else None

    def move(self, by: int) -> bool:
        """Move by some pages, within the run; return whether it moved."""
        return self.go(self.page + by)

    def go(self, page: int) -> bool:
        """Go to a page or the nearest; return whether it has changed."""
        before, self.page = self.page, max(0, min(page, self.last))
        return self.page != before

    def to_error(self, direction: int) -> bool:
        """Move to the next or previous error; return whether there is one."""
        return self._first(page for page in self._pages(direction) if failed(self.pages.step(page)))

    def to_text(self, text: str, direction: int = 1) -> bool:
        """Move to the next step whose records contain a text, ignoring case."""
        wanted = text.casefold()
        return bool(wanted) and self._first(
            page
            for page in self._pages(direction)
            if any(wanted in record.raw.decode().casefold() for record in self.pages.step(page).records)
        )

    def to_change(self, path: str, direction: int) -> bool:
        """Move to the next or previous change at or below a path."""
        steps = sorted({*self.trace.find(path or "/**"), *(self.trace.find(f"{path}/**") if path else ())})
        pages = [step + 1 for step in steps]
        fitting = [page for page in pages if (page - self.page) * direction > 0]
        return self._first(iter(fitting if direction > 0 else fitting[::-1]))

    def _pages(self, direction: int) -> Iterator[int]:
        return iter(range(self.page + 1, self.last) if direction > 0 else range(self.page - 1, 0, -1))

    def _first(self, pages: Iterable[int]) -> bool:
        found = next(iter(pages), None)
        return found is not None and self.go(found)


def failed(step: Step) -> bool:
    """Return whether a call of a step failed; the bytes mostly decide."""
    if not any(b"error" in record.raw for record in step.records):
        return False
    return any(error is not None for error in step.errors) or any(
        each.error is not None for effect in step.effects for each in effect.walk()
    )


def sign_of(step: Step) -> str:
    """Return the sign of a step in the overview."""
    if failed(step):
        return "E"
    return {"wait": "W", "branch": "B", "final": "F"}.get(str((step.decision or {}).get("mode")), ".")


def overview(cursor: Cursor, width: int) -> str:
    """Return the run in `width` columns of signs.

    Each column has the rarest sign of its steps; at most `width` steps are read.
    """
    steps = cursor.pages.shown_steps
    columns = min(width, steps)
    signs = []
    for column in range(columns):
        first, end = column * steps // columns, (column + 1) * steps // columns
        looked = range(first, end) if steps <= _LOOKED else range(first, first + 1)
        signs.append(max((sign_of(cursor.pages.step(k + 1)) for k in looked), key=_RANK.__getitem__))
    return "".join(signs)


_LOOKED = 2000
"""Up to how many steps the overview reads each step; in a longer run, it reads the first step of each column."""
