"""The table of runs: its rows, filters and pages."""

import heapq
from collections.abc import Iterable, Iterator
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


def page_key(row: RunRow) -> str:
    """Return the `after` of the page that follows this row."""
    return f"{row.started!r} {row.run_id}"


def parse_key(after: str) -> tuple[float, str]:
    """Return the time and run id in a page's `after`; raises `ValueError`."""
    started, _, run_id = after.partition(" ")
    if not run_id:
        raise ValueError(f"{after!r} is not the `next` of a page")
    return float(started), run_id


def fits(row: RunRow, where: RunFilter) -> bool:
    """Return whether a filter selects a row."""
    return (
        (where.set_id is None or row.set_id == where.set_id)
        and (where.status is None or row.status == where.status)
        and (where.model is None or row.model == where.model)
        and (where.parent is None or (row.parent or "") == where.parent)
        and (where.since is None or row.started >= where.since)
        and (where.until is None or row.started < where.until)
        and (
            where.text is None
            or any(where.text.lower() in each.lower() for each in (row.task, row.objective, row.run_id))
        )
    )


def page_of(rows: Iterable[RunRow], where: RunFilter, after: str | None, limit: int) -> RunPage:
    """Return one page of rows, newest first."""
    last = None if after is None else parse_key(after)

    def wanted() -> Iterator[RunRow]:
        for row in rows:
            if fits(row, where) and (last is None or (row.started, row.run_id) < last):
                yield row

    newest = heapq.nlargest(limit + 1, wanted(), key=lambda row: (row.started, row.run_id))
    return RunPage(tuple(newest[:limit]), page_key(newest[limit - 1]) if len(newest) > limit else None)
