"""`refold trace ls`: the runs of a folder at a glance."""

from itertools import islice
from pathlib import Path
from typing import Any

from rich.text import Text

from ....traces import TraceSummary, list_traces
from ....traces.stores import RunRow, open_store
from ....traces.stores.store_url import is_url
from ...input.find_trace import listed_runs, no_folder
from ...render.output import console, is_terminal, say, table, write_json
from ...render.phrases import status_text
from ...render.text import brief, clean, moment_text, size_text

_NEWEST = 100
"""The number of runs listed of a store, which may hold a million."""


def list_folder(folder: Path, as_json: bool) -> int:
    """List the traces of a folder, oldest first; raises InputError without one."""
    if not folder.is_dir():
        raise no_folder(folder, "name the folder that the traces are in: refold trace ls DIR")
    return _show(list_traces(folder), str(folder), as_json)


def list_store(url: str, as_json: bool) -> int:
    """List the newest runs of a store, in order of start."""
    store = open_store(url, "read")
    try:
        rows = list(islice(listed_runs(store), _NEWEST))[::-1]
        found = [_summary(row) for row in rows]
        return _show(found, store.url, as_json)
    finally:
        store.close()


def _summary(row: RunRow) -> TraceSummary:
    status = "running" if row.held and row.status == "interrupted" else row.status
    return TraceSummary(
        Path(row.run_id), row.run_id, status, row.stop_reason, row.steps, row.objective, row.started, row.size
    )


def _show(found: list[TraceSummary], where: str, as_json: bool) -> int:
    if as_json:
        write_json({"traces": [_json(each, where) for each in found]})
        return 0
    out = console()
    if not found:
        say(out, Text(clean(f"no traces in {where}")))
        return 0
    width = out.width if is_terminal() else 1000
    headings = ["run", "status", "steps", "objective", "started", "size"]
    rows = [_row(each, width) for each in found]
    kept = 3 if width < 80 else 4 if width < 110 else 6  # drop the least useful first; a run's id names its task anyway
    headings, rows = headings[:kept], [row[:kept] for row in rows]
    numbers = [headings.index(name) for name in ("steps", "size") if name in headings]
    table(out, headings, rows, numbers=numbers, whole=[0])
    return 0


def standing(summary: TraceSummary) -> str:
    """Return the status to show.

    A run without an end is running while a live process writes to its trace.
    """
    return "running" if summary.pid is not None and summary.status in ("interrupted", "waiting") else summary.status


def _row(summary: TraceSummary, width: int) -> list[Text]:
    started = summary.started_at
    return [
        Text(clean(summary.run_id), "bold"),
        status_text(standing(summary), summary.stop_reason or (brief(summary.error, 50) if summary.error else None)),
        Text(str(summary.steps)),
        Text(brief(summary.objective or "", max(20, min(60, width // 3)))),
        Text(moment_text(started) if started is not None else "", "dim"),
        Text(size_text(summary.size), "dim"),
    ]


def _json(summary: TraceSummary, where: str) -> dict[str, Any]:
    doc = {name: getattr(summary, name) for name in summary.__slots__}
    path = f"{where}#{summary.run_id}" if is_url(where) else str(summary.path)
    return {**doc, "path": path, "status": standing(summary)}
