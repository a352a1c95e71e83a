"""The status at the bottom of a terminal.

The status line has the run's step, its current work and the time since this work started, above the budget's bars.
"""

import time
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from ...render.bars import live_lines
from ...render.progress import Progress
from ...render.text import brief


class StatusLine:
    """A status line with bars, visible while nothing else is printed."""

    def __init__(self, out: Console, doing: Callable[[], str], progress: Progress) -> None:
        self._out = out
        self._doing = doing
        self._progress = progress
        self._more = ""
        self._since = time.monotonic()
        self._hiding = False
        self._spinner = Spinner("dots", style="blue")
        self._live: Live | None = None

    def begin(self) -> None:
        """Start to count the seconds."""
        self._since = time.monotonic()

    def show(self, more: str) -> None:
        """Show the line, with `more` at its end."""
        self._more = more
        if self._live is None:
            self._live = Live(
                get_renderable=self.renderable, console=self._out, transient=True, refresh_per_second=8,
            )  # fmt: skip
            self._live.start()

    def hide(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._hiding = True  # rich draws the line once more when it stops: it must then be empty
            self._live.stop()
            self._live, self._hiding = None, False
            self._out.file.flush()

    def renderable(self) -> RenderableType:
        """Return the current contents."""
        if self._hiding:
            return Text()
        text = Text(f" step {self._progress.steps}  {self._doing()} ", "dim", no_wrap=True, overflow="ellipsis")
        passed = time.monotonic() - self._since
        text.append(f"{int(passed):,} s" if passed >= 2 else "")
        if self._more:
            text.append(f"  {brief(self._more, 80)}", "dim")
        self._spinner.update(text=text)
        return Group(self._spinner, *live_lines(self._progress, time.time(), self._out.width))
