"""The table of runs: its rows, filters, pages and totals."""

from dataclasses import dataclass

from ..run_row import RunRow as RunRow


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The runs that a page shows; None does not restrict a column.

    `parent=""` selects runs without a parent. `text` is searched for in task, objective and run id.
    """

    set_id: str | None = None
    status: str | None = None
    model: str | None = None
    parent: str | None = None
    text: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of the table of runs.

    `next` is the `after` of the next page, or None.
    """

    rows: tuple[RunRow, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """The totals of a group of runs; other columns are None."""

    set_id: str | None
    model: str | None
    status: str | None
    runs: int
    tokens: int
    cost: float


def page_key(row: RunRow) -> str:
    """Return the `after` of the page that follows this row."""
    return f"{row.started!r} {row.run_id}"


def parse_key(after: str) -> tuple[float, str]:
    """Return the time and run id in a page's `after`; raises `ValueError`."""
    started, _, run_id = after.partition(" ")
    if not run_id:
        raise ValueError(f"{after!r} is not the `next` of a page")
    return float(started), run_id
