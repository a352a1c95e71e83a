"""`refold trace ls`: the runs of a folder at a glance."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ....traces import TraceSummary, list_traces
from ...errors import InputError
from ...render.output import console, is_terminal, say, table, write_json
from ...render.text import brief, clean, moment_text, size_text
from ...render.wording import status_text

_BESIDE = 30
"""Columns that a status, the steps and the blanks between them take, about."""


def list_folder(folder: Path, as_json: bool) -> int:
    """List the traces of a folder, oldest first.

    Raises InputError if there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that the traces are in: refold trace ls DIR")
    found = list_traces(folder)
    if as_json:
        write_json({"traces": [_json(each) for each in found]})
        return 0
    out = console()
    if not found:
        say(out, Text(f"no traces in {folder}"))
        return 0
    width = out.width if is_terminal() else 1000
    if width < max(len(each.run_id) for each in found) + _BESIDE:
        for each in found:
            _stacked(out, each, width)
        return 0
    headings = ["run", "status", "steps", "objective", "started", "size"]
    rows = [_row(each, width) for each in found]
    kept = 3 if width < 80 else 4 if width < 110 else 6  # drop the least useful first; a run's id names its task anyway
    headings, rows = headings[:kept], [row[:kept] for row in rows]
    numbers = [headings.index(name) for name in ("steps", "size") if name in headings]
    table(out, headings, rows, numbers=numbers, whole=[0])
    return 0


def _stacked(out: Console, summary: TraceSummary, width: int) -> None:
    """Print a run on two lines.

    Its id is unbroken on the first, so that it can be copied.
    """
    run, status, steps, *others = _row(summary, width)
    out.print(run, soft_wrap=True)
    facts = [status, Text(f"{steps.plain} step{'' if summary.steps == 1 else 's'}"), *others]
    say(out, Text("  ") + Text(", ").join(fact for fact in facts if fact.plain))


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


def _json(summary: TraceSummary) -> dict[str, Any]:
    doc = {name: getattr(summary, name) for name in summary.__slots__}
    return {**doc, "path": str(summary.path), "status": standing(summary)}
