"""Rows of the table of runs, computed from traces."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from ..errors import RecordError, TraceCorruptError
from ..file.lines import Lines
from ..file.record import Record
from ..file.tail import read_ending
from ..states.fold import COMMIT
from .protocol import Grouping
from .run_row import RunFilter, RunPage, RunRow, Total, page_key, parse_key

_TAIL = 64 * 1024


def read_row(file: BinaryIO, row: RunRow, size: int) -> RunRow:
    """Return the row of a trace, from both ends of `size` bytes.

    Raises `TraceError` if the trace is corrupt.
    """
    file.seek(0)
    first = file.readline(size)
    if not first.endswith(b"\n"):
        return replace(row, size=size)
    row = replace(from_header(row, _parsed(first[:-1])), size=size)
    length = _TAIL
    while True:
        start = max(0, size - length)
        file.seek(start)
        data = file.read(size - start)
        lines = Lines(data[data.find(b"\n") + 1 :] if start else data)
        commit = lines.data.rfind(COMMIT, 0, lines.end)
        ending = read_ending(lines) if commit >= 0 or not start else None
        if ending is not None or not start:
            break
        length *= 16
    if commit >= 0:
        row = from_commit(row, lines.record_at(commit + 1))
    if ending is not None:
        row = replace(row, status=ending.status, stop_reason=ending.stop_reason)
        if ending.record is not None:
            row = from_usage(row, ending.record.get("usage"))
    if lines.end:
        row = replace(row, changed=lines.record_at(lines.data.rfind(b"\n", 0, lines.end - 1) + 1).at)
    return row


def _parsed(line: bytes) -> Record:
    try:
        record = Record.parse(line)
    except RecordError as error:
        raise TraceCorruptError(str(error), 1) from None
    if record.kind != "header":
        raise TraceCorruptError("the trace does not begin with its header", 1)
    return record


def from_header(row: RunRow, header: Record) -> RunRow:
    """Return the row with a header's facts."""
    task, link = header.get("task") or {}, header.get("parent") or {}
    model = (task.get("metadata") or {}).get("model")
    return replace(
        row,
        run_id=row.run_id or header.get("run_id") or "",
        task=task.get("id") or "",
        objective=(task.get("objective") or "")[:4000],
        module=header.get("module") or "",
        model=model if isinstance(model, str) else row.model,
        parent=link.get("run"),
        parent_kind=link.get("kind"),
        started=header.at,
        changed=header.at,
    )


def from_commit(row: RunRow, commit: Record) -> RunRow:
    """Return the row with the steps and usage of a commit."""
    return from_usage(replace(row, steps=commit.step + 1), commit.get("usage"))


def from_usage(row: RunRow, usage: Mapping[str, Any] | None) -> RunRow:
    """Return the row with a record's usage; unchanged without one."""
    if not usage:
        return row
    tokens, cost = tokens_and_cost(usage)
    return replace(row, tokens=max(row.tokens, tokens), cost=cost)


def tokens_and_cost(usage: Mapping[str, Any]) -> tuple[int, float | None]:
    """Return the tokens and the cost in US dollars of a usage.

    The cost is None if a price was unknown.
    """
    tokens = int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0)
    return tokens, None if usage.get("unpriced") else float(usage.get("cost") or 0.0)


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
