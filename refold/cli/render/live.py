"""A live view of a run: its steps, and budget bars."""

import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ...traces import Record
from ...traces.file.record import BEAT
from ..commands.trace.forks import live_text, origin_text
from .bars import live_lines
from .output import is_terminal, say
from .phrases import step_line
from .progress import Progress
from .text import brief, clean, value_text

_EVERY = 0.125
"""Seconds between two drawings of the bars."""


class LiveView:
    """An observer that prints a run's steps.

    Use it as a context manager around the run. The lines and the bars are drawn under one lock: rich erases as many
    lines as it drew last, and would leave lines that another thread draws at the same moment.

    Records may come from any thread. If output can no longer be written, the view goes silent and the run continues.
    """

    def __init__(self, out: Console, earlier: Iterable[Record] = (), clock: Callable[[], float] = time.time) -> None:
        self.progress = Progress()
        for record in earlier:
            self.progress.take(record)
        self._out = out
        self._clock = clock
        self._lock = threading.Lock()
        self._live = Live(_Bars(self.progress, clock), console=out, transient=True, auto_refresh=False)
        self._ended = threading.Event()
        self._drawing = threading.Thread(target=self._draw, name="refold: bars", daemon=True)
        self._shows_bars = is_terminal()
        self._quiet = False

    def __enter__(self) -> Self:
        if self._shows_bars:
            self._live.start()
            self._drawing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shows_bars:
            self._ended.set()
            self._drawing.join()
            self._live.stop()

    def __call__(self, record: Record) -> None:
        """Print the line of a record that was just written."""
        with self._lock:
            done = self.progress.take(record)
            line = step_line(done, self._room()) if done is not None else note(record)
            if line is not None and not self._quiet:
                self._print(line)

    def _draw(self) -> None:
        while not self._ended.wait(_EVERY):
            with self._lock:
                try:
                    self._live.refresh()
                except OSError:
                    self._quiet = True
                    return

    def _print(self, line: Text) -> None:
        try:
            if self._shows_bars:
                self._out.print(line, no_wrap=True, overflow="ellipsis")
            else:
                say(self._out, line)
                self._out.file.flush()
        except OSError:
            self._quiet = True

    def _room(self) -> int:
        """Return the largest width of a decision; the results need the rest."""
        return max(16, self._out.width - 48) if self._shows_bars else 100


def note(record: Record) -> Text | None:
    """Return the line for a record that is no step, or None."""
    if record.kind == "header":
        objective = (record.get("task") or {}).get("objective") or ""
        text = Text(f"run {clean(record['run_id'])}  ", "dim").append(brief(objective, 100))
        parent = record.get("parent")
        return text if parent is None else text.append("  fork ").append(origin_text(parent))
    if record.kind == "resume":
        torn = f"; a torn last record of {record['torn']:,} bytes was cut off" if record.get("torn") else ""
        again = "; the call that failed is made again" if "again" in record.data else ""
        return Text(f"resumed at step {record.step}, attempt {record['attempt']}{again}{torn}", "dim")
    if record.kind == "wait":
        asked = [str(request.get("prompt") or "an answer") for request in record["requests"]]
        return Text("  waits for: ", "cyan").append(brief("; ".join(asked), 100))
    if record.kind == "input":
        passed = record.get("expired")
        return Text("  the time to answer has passed" if passed else "  answered", "cyan")
    if record.kind == "event":
        if record["name"] == BEAT:
            return None
        if record["name"] == "live_from" and "reused" in record:
            return Text("  live from ", "yellow").append(live_text(record["data"]))
        return _event(str(record["name"]), record.get("data") or {})
    return None


def _event(name: str, data: Any) -> Text:
    if name == "budget_warning" and isinstance(data, dict) and data.get("limit"):
        what = {"cost_usd": "US dollars"}.get(str(data.get("what")), clean(str(data.get("what"))))
        return Text(f"  {data['used'] / data['limit']:.0%} of the budget's {data['limit']:g} {what} are used", "yellow")
    return Text(f"  {clean(name)} {brief(value_text(data), 80) if data else ''}".rstrip(), "dim")


class _Bars:
    """The current step, a bar for each limit, and changed paths."""

    def __init__(self, progress: Progress, clock: Callable[[], float]) -> None:
        self._progress = progress
        self._clock = clock
        self._spinner = Spinner("dots", style="blue")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        progress = self._progress
        if not progress.budget:
            return
        self._spinner.update(
            text=Text(f" step {progress.steps}  {progress.doing()}", "bold", no_wrap=True, overflow="ellipsis")
        )
        yield self._spinner
        yield from live_lines(progress, self._clock(), options.max_width)
