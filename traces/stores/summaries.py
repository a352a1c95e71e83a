"""Pages and totals of rows that no database counts."""

import heapq
from collections.abc import Iterable, Iterator, Sequence

from .protocol import Grouping
from .run_row import RunFilter, RunPage, RunRow, Total, page_key, parse_key


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

    found = heapq.nlargest(limit + 1, wanted(), key=lambda row: (row.started, row.run_id))
    return RunPage(tuple(found[:limit]), page_key(found[limit - 1]) if len(found) > limit else None)


def add_up(rows: Iterable[RunRow], by: Sequence[Grouping], where: RunFilter) -> list[Total]:
    """Return the totals of groups of rows."""
    sums: dict[tuple[str | None, str | None, str | None], tuple[int, int, float]] = {}
    for row in rows:
        if fits(row, where):
            group = (
                row.set_id if "set" in by else None,
                row.model if "model" in by else None,
                row.status if "status" in by else None,
            )
            runs, tokens, cost = sums.get(group, (0, 0, 0.0))
            sums[group] = runs + 1, tokens + row.tokens, cost + (row.cost or 0.0)
    keys = sorted(sums, key=lambda group: tuple(part or "" for part in group))
    return [Total(*group, *sums[group]) for group in keys]
