"""`refold trace ls`: the runs of a folder at a glance."""

from itertools import islice
from pathlib import Path
from typing import Any

from rich.text import Text

from ....traces import RunRow, list_traces
from ....traces.stores import open_store
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
        return _show(rows, store.url, as_json)
    finally:
        store.close()


def _show(found: list[RunRow], where: str, as_json: bool) -> int:
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


def _row(row: RunRow, width: int) -> list[Text]:
    started = row.started or None
    return [
        Text(clean(row.run_id), "bold"),
        status_text(row.standing, row.stop_reason or (brief(row.problem, 50) if row.problem else None)),
        Text(str(row.steps)),
        Text(brief(row.objective or "", max(20, min(60, width // 3)))),
        Text(moment_text(started) if started is not None else "", "dim"),
        Text(size_text(row.size), "dim"),
    ]


def _json(row: RunRow, where: str) -> dict[str, Any]:
    path = f"{where}#{row.run_id}" if is_url(where) else str(Path(where) / row.file)
    return {
        "path": path,
        "run_id": row.run_id,
        "status": row.standing,
        "stop_reason": row.stop_reason,
        "steps": row.steps,
        "objective": row.objective or None,
        "started_at": row.started or None,
        "size": row.size,
        "pid": row.pid,
        "error": row.problem,
    }
