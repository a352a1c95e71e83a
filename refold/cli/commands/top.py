"""`refold top`: the runs of a folder, kept current."""

import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...traces.index.found_files import why_none
from ...traces.stores import open_store
from ...traces.stores.mirror import Mirror
from ...traces.stores.store_url import is_url
from ..input.find_trace import no_folder
from ..render.output import can_ask, console, is_terminal, say, table, write_json
from ..render.phrases import status_text
from ..render.text import brief, clean, count_text, seconds_text
from .watched_run import Standing, WatchedFolder

_HEADINGS = ("run", "status", "step", "doing", "tokens", "cost", "time", "objective")
_NUMBERS = (2, 4, 5, 6)
_DROPPED = ("objective", "reason", "cost", "doing", "tokens", "time")
"""The columns that a narrow screen omits, in this order, so that the runs remain distinguishable."""
_FLEXIBLE = ("run", "objective")
"""The columns that are cut first."""
_RUN = (22, 36)
"""The least and the largest width of a run's id: the start of the task's name, and six characters of the end."""
_OBJECTIVE = 24
"""The least useful width of an objective."""
_GAP = 2
"""The characters between two columns."""


def watch_runs(place: str, *, once: bool, every: float, as_json: bool) -> int:
    """Show the runs of a folder, or the newest of a store.

    They are kept current at a terminal until a person ends the command; otherwise, they are shown once.
    """
    if is_url(place):
        with contextlib.closing(open_store(place, "read")) as store, Mirror(store) as mirror:
            return _show(WatchedFolder(mirror), once=once, every=every, as_json=as_json)
    folder = Path(place)
    if not folder.is_dir():
        raise no_folder(folder, "name the folder that the traces are in: refold top DIR")
    return _show(WatchedFolder(folder), once=once, every=every, as_json=as_json)


def _show(runs: WatchedFolder, *, once: bool, every: float, as_json: bool) -> int:
    if can_ask() and not once and not as_json:
        _watch(runs, every)
    found = runs.look()
    if as_json:
        write_json({"at": time.time(), "runs": [each.to_dict(runs.url) for each in found]})
    else:
        _print(console(), runs, found)
    return 0


def _watch(runs: WatchedFolder, every: float) -> NoReturn:
    out = console()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the screen from before comes back
    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_screen(runs, runs.look(), out.width, out.height), refresh=True)
            time.sleep(every)


def _screen(runs: WatchedFolder, found: Sequence[Standing], width: int, height: int) -> RenderableType:
    room = max(1, height - 4)
    grid = Table(box=None, padding=(0, 1), pad_edge=False)
    rows = [_cells(each, _RUN[1]) for each in found[:room]]
    shown, with_reason, widest = _fitting(rows, width)
    for number in shown:
        justify: Literal["right", "left"] = "right" if number in _NUMBERS else "left"
        whole = _HEADINGS[number] not in _FLEXIBLE  # rich narrows the columns that may wrap, and no other if it can
        grid.add_column(Text(_HEADINGS[number]), justify=justify, no_wrap=whole, overflow="ellipsis")
    for each, cells in zip(found, rows, strict=False):
        cells[0] = Text(_short_id(clean(each.summary.run_id), widest), "bold")
        cells[1] = cells[1] if with_reason else status_text(each.status, None)
        for cell in cells:
            cell.no_wrap, cell.overflow = True, "ellipsis"
        grid.add_row(*(cells[number] for number in shown))
    more = Text(f"and {count_text(len(found) - room, 'run')} more", "dim") if len(found) > room else Text()
    return Group(_head(runs, found), grid, more, Text("Ctrl-C quits", "dim"))


def _fitting(rows: Sequence[Sequence[Text]], width: int) -> tuple[list[int], bool, int]:
    """Return what fits into a screen.

    The results are the columns, whether a status has its reason, and the width of a run's id.
    """
    widths = [max([len(name), *(row[number].cell_len for row in rows)]) for number, name in enumerate(_HEADINGS)]
    bare = max([len("status"), *(len(row[1].plain.partition(" (")[0]) for row in rows)])
    least, most = _RUN
    widths[-1] = _OBJECTIVE
    shown, with_reason = list(range(len(_HEADINGS))), True
    for dropped in ("", *_DROPPED):
        if dropped == "reason":
            with_reason, widths[1] = False, bare
        elif dropped:
            shown.remove(_HEADINGS.index(dropped))
        left = width - sum(widths[number] + _GAP for number in shown[1:])
        if left >= min(least, widths[0]):
            break
    return shown, with_reason, max(14, min(left, most))


def _short_id(run_id: str, most: int) -> str:
    """Return an id cut to so many characters, with its end.

    Runs of one task differ at the end of their ids.
    """
    return run_id if len(run_id) <= most else f"{run_id[: most - 7]}…{run_id[-6:]}"


def _head(runs: WatchedFolder, found: Sequence[Standing]) -> Text:
    if not found:
        gone = None if runs.url else why_none(runs.folder, None)
        return Text(clean(gone) if gone else f"no traces in {clean(runs.url or str(runs.folder))} yet")
    counts: dict[str, int] = {}
    for each in found:
        counts[each.status] = counts.get(each.status, 0) + 1
    text = Text(f"{clean(runs.url or str(runs.folder))}  ", "bold")
    return text.append_text(Text("  ").join(status_text(name).append(f" {count}") for name, count in counts.items()))


def _print(out: Console, runs: WatchedFolder, found: Sequence[Standing]) -> None:
    say(out, _head(runs, found))
    if found:
        rows = [_cells(each, 60 if not is_terminal() else 36) for each in found]
        table(out, _HEADINGS, rows, numbers=_NUMBERS, whole=[0])


def _cells(each: Standing, width: int) -> list[Text]:
    summary = each.summary
    told = summary.error or summary.stop_reason
    return [
        Text(clean(summary.run_id) if width > 36 else brief(summary.run_id, width), "bold"),
        status_text(each.status, brief(told, 40) if told and each.status != "running" else None),
        Text(f"{summary.steps:,}"),
        Text(each.doing),
        Text(f"{each.tokens:,}" if each.tokens else ""),
        Text(f"{each.cost:.4f}" if each.cost else "?" if each.cost is None and each.tokens else ""),
        Text(seconds_text(each.seconds) if each.seconds is not None else "", "dim"),
        Text(brief(summary.objective or "", 60)),
    ]
