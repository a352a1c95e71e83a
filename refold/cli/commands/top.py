"""`refold top`: the runs of a folder, kept current."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..errors import INTERRUPTED, InputError
from ..input.keys import keyboard
from ..render.output import can_ask, console, is_terminal, say, table, write_json
from ..render.text import brief, clean, count_text, seconds_text
from ..render.wording import status_text
from .watched import Standing, WatchedFolder

_HEADINGS = ("run", "status", "step", "doing", "tokens", "cost", "steps/min", "time", "objective")
_NUMBERS = (2, 4, 5, 6, 7)


def watch_folder(folder: Path, *, once: bool, every: float, as_json: bool) -> int:
    """Show the runs of a folder until a person ends it, or once."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that the traces are in: refold top DIR")
    runs = WatchedFolder(folder)
    if can_ask() and not once and not as_json:
        return _watch(runs, every)
    out = console()
    while True:
        found = runs.look()
        if as_json:
            write_json({"at": time.time(), "runs": [each.to_dict() for each in found]})
        else:
            _print(out, runs, found)
        if once:
            return 0
        time.sleep(every)


def _watch(runs: WatchedFolder, every: float) -> int:
    out = console()
    with keyboard() as read, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_screen(runs, runs.look(), out.height), refresh=True)
            key = read(every)
            if key in ("q", "escape", "ctrl-d"):
                return 0
            if key == "ctrl-c":
                return INTERRUPTED


def _screen(runs: WatchedFolder, found: Sequence[Standing], height: int) -> RenderableType:
    room = max(1, height - 4)
    grid = Table(box=None, padding=(0, 1), pad_edge=False, expand=True)
    for number, heading in enumerate(_HEADINGS):
        last = number == len(_HEADINGS) - 1
        right = number in _NUMBERS
        grid.add_column(
            heading, justify="right" if right else "left", no_wrap=True, overflow="ellipsis", ratio=1 if last else None
        )
    for each in found[:room]:
        grid.add_row(*_cells(each, 36))
    more = Text(f"and {count_text(len(found) - room, 'run')} more", "dim") if len(found) > room else Text()
    return Group(_head(runs, found), grid, more, Text("q quits", "dim"))


def _head(runs: WatchedFolder, found: Sequence[Standing]) -> Text:
    if not found:
        return Text(f"no traces in {clean(str(runs.folder))} yet")
    counts: dict[str, int] = {}
    for each in found:
        counts[each.status] = counts.get(each.status, 0) + 1
    text = Text(f"{clean(str(runs.folder))}  ", "bold")
    return text.append_text(Text("  ").join(status_text(name).append(f" {count}") for name, count in counts.items()))


def _print(out: Console, runs: WatchedFolder, found: Sequence[Standing]) -> None:
    say(out, _head(runs, found))
    if found:
        rows = [_cells(each, 60 if not is_terminal() else 36) for each in found]
        table(out, _HEADINGS, rows, numbers=_NUMBERS, whole=[0])
    out.file.flush()


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
        Text(f"{each.rate:,.1f}" if each.rate else "", "dim"),
        Text(seconds_text(each.seconds) if each.seconds is not None else "", "dim"),
        Text(brief(summary.objective or "", 60)),
    ]
