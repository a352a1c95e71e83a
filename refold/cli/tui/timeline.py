"""The run as one line, and the list of its steps."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from ..render.phrases import decision_text
from .cursor import Cursor, failed, overview

_SIGNS = {".": ("▁", "dim"), "E": ("▲", "red"), "W": ("▮", "yellow"), "B": ("◆", "magenta"), "F": ("■", "green")}
_MODES = {"act": "●", "branch": "◆", "wait": "▮", "final": "■"}


class Overview(Widget):
    """The whole run in one line, with the cursor on it."""

    DEFAULT_CSS = "Overview { height: 2; }"

    def __init__(self, cursor: Cursor) -> None:
        super().__init__(id="overview")
        self._cursor = cursor
        self._signs = ""

    def render(self) -> Text:
        """Return the line of signs, and below it the cursor."""
        width = max(1, self.size.width)
        steps = self._cursor.pages.shown_steps
        if len(self._signs) != min(width, steps):
            self._signs = overview(self._cursor, width)
        text = Text(no_wrap=True)
        for sign in self._signs:
            glyph, style = _SIGNS[sign]
            text.append(glyph, style)
        page = min(max(self._cursor.page - 1, 0), max(steps - 1, 0))
        at = page * len(self._signs) // max(1, steps)
        return text.append("\n").append(" " * at + "▲", "bold blue")


class StepList(ScrollView, can_focus=True):
    """The pages of a replay, one a line, made when visible."""

    DEFAULT_CSS = "StepList { width: 34; border-right: solid $panel; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,space,enter", "app.move(1)"),
        Binding("up,backspace", "app.move(-1)"),
        Binding("pagedown", "app.move(10)"),
        Binding("pageup", "app.move(-10)"),
        Binding("home", "app.go(0)"),
        Binding("end", "app.go(-1)"),
    ]

    class Picked(Message):
        """A page was clicked."""

        def __init__(self, page: int) -> None:
            super().__init__()
            self.page = page

    def __init__(self, cursor: Cursor) -> None:
        super().__init__(id="steps")
        self._cursor = cursor

    def on_mount(self) -> None:
        """Set the size of the list."""
        self.virtual_size = Size(32, len(self._cursor.pages))

    def show_cursor(self) -> None:
        """Redraw the list with the cursor's line visible."""
        top, height = int(self.scroll_offset.y), max(1, self.size.height)
        page = self._cursor.page
        if not top <= page < top + height:
            self.scroll_to(y=max(0, page - height // 2), animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the list."""
        width, page = self.size.width, int(self.scroll_offset.y) + y
        if page >= len(self._cursor.pages):
            return Strip.blank(width, self.rich_style)
        here = page == self._cursor.page
        line = self._line(page)
        line.truncate(width, overflow="ellipsis", pad=True)
        style = self.rich_style + Style(reverse=here)
        return Strip(
            [Segment(s.text, style + (s.style or Style())) for s in line.render(self.app.console, end="")], width
        )

    def on_click(self, event: Click) -> None:
        """Report the page that was clicked."""
        page = int(self.scroll_offset.y) + event.y
        if page < len(self._cursor.pages):
            self.post_message(self.Picked(page))

    def _line(self, page: int) -> Text:
        pages = self._cursor.pages
        if page == 0:
            return Text("    summary", "italic", no_wrap=True)
        if page == self._cursor.last:
            return Text("    the end", "italic", no_wrap=True)
        step = pages.step(page)
        mode = str((step.decision or {}).get("mode"))
        sign, style = ("▲", "red") if failed(step) else (_MODES.get(mode, "○"), "")
        number = f"{step.index:>{len(str(pages.shown_steps))}} "
        return Text(number, "dim", no_wrap=True).append(sign, style).append(f" {decision_text(step.decision, 40)}")
