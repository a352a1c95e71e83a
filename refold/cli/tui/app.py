"""A replay on the full screen: steps, current step, state."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from rich.console import Group
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, Static

from ...traces import Trace, changed_between
from ..commands.replay.pages import heading
from ..errors import INTERRUPTED
from .cursor import Cursor
from .state_tree import StateTree
from .timeline import Overview, StepList

KEYS = (
    "j k  step    J K  ten steps    Home End  first, last    g  go to    s  summary    e E  error\n"
    "[ ]  change of the path picked in the state    t  what changed, or all    f  long values in full\n"
    "/  search    n N  next, previous hit    Tab  next pane    d  theme    ?  keys    q  quit"
)
_TERMINATED = 128 + 15


class ReplayApp(App[int]):
    """A replay with panes; no key changes the trace."""

    CSS = """
    #head { height: 1; }
    #step { width: 1fr; padding: 0 1; }
    #prompt { display: none; dock: bottom; height: 1; border: none; }
    #prompt.asked { display: block; }
    #foot { height: auto; color: $text-muted; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,right", "move(1)"),
        Binding("k,left", "move(-1)"),
        Binding("J", "move(10)"),
        Binding("K", "move(-10)"),
        Binding("home", "go(0)"),
        Binding("end", "go(-1)"),
        Binding("s", "go(0)"),
        Binding("e", "error(1)"),
        Binding("E", "error(-1)"),
        Binding("left_square_bracket", "change(-1)"),
        Binding("right_square_bracket", "change(1)"),
        Binding("t", "changes"),
        Binding("f", "full"),
        Binding("g", "ask('go to step')"),
        Binding("slash", "ask('search')"),
        Binding("n", "hit(1)"),
        Binding("N", "hit(-1)"),
        Binding("d", "theme"),
        Binding("question_mark", "keys"),
        Binding("q,ctrl+d", "leave(0)"),
        Binding("ctrl+c", f"leave({INTERRUPTED})", priority=True),
        Binding("escape", "dismiss", priority=True),
    ]

    def __init__(self, trace: Trace, *, full: bool = False) -> None:
        super().__init__()
        self.cursor = Cursor(trace)
        self.full = full
        self._text = ""

    def compose(self) -> ComposeResult:
        """Make the panes."""
        yield Static(heading(self.cursor.trace), id="head", markup=False)
        yield Overview(self.cursor)
        with Horizontal():
            yield StepList(self.cursor)
            with VerticalScroll(id="step"):
                yield Static(id="lines", markup=False)
            yield StateTree()
        yield Static("?  keys", id="foot", markup=False)
        yield Input(id="prompt", compact=True)

    def on_mount(self) -> None:
        """Show the first page; on SIGTERM, restore the terminal."""
        if sys.platform != "win32":
            with suppress(RuntimeError, ValueError):  # in a test, the app is not in the main thread
                leave = lambda: self.exit(_TERMINATED)  # noqa: E731
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
        self.query_one(StepList).focus()
        self.show_page()

    def show_page(self) -> None:
        """Show the cursor's page in all panes."""
        cursor, pages = self.cursor, self.cursor.pages
        lines = pages.lines(cursor.page, self.full, "f shows all")
        self.query_one("#lines", Static).update(Group(pages.title(cursor.page), *lines))
        self.query_one("#step", VerticalScroll).scroll_home(animate=False)
        self.query_one(StepList).show_cursor()
        self.query_one(Overview).refresh()
        self._show_state()

    def _show_state(self) -> None:
        trace, step = self.cursor.trace, self.cursor.step
        tree = self.query_one(StateTree)
        if step is not None:
            tree.show(step.state, step.changes if step.committed else ())
        elif self.cursor.page == 0:
            tree.show(trace.first_state or {}, ())
        elif trace.first_state is not None:
            tree.show(trace.final_state, changed_between(trace.state(-1), trace.final_state))

    def _moved(self, moved: bool, refused: str) -> None:
        self._say("" if moved else refused)
        if moved:
            self.show_page()

    def _say(self, text: str) -> None:
        self.query_one("#foot", Static).update(Text(text or "?  keys"))

    def action_move(self, by: int) -> None:
        """Move by some steps."""
        self._moved(self.cursor.move(by), "this is the end" if by > 0 else "this is the beginning")

    def action_go(self, page: int) -> None:
        """Move to a page; -1 is the last one."""
        self.cursor.go(page if page >= 0 else self.cursor.last)
        self.show_page()

    def action_error(self, direction: int) -> None:
        """Move to another step with an error."""
        self._moved(self.cursor.to_error(direction), "there is no error " + ("below" if direction > 0 else "above"))

    def action_change(self, direction: int) -> None:
        """Move to another change of the path selected in the state."""
        path = self.query_one(StateTree).path
        where = f"no change of {path or 'the state'} " + ("below" if direction > 0 else "above")
        self._moved(self.cursor.to_change(path, direction), where)

    def action_changes(self) -> None:
        """Show only the changes, or the whole state."""
        tree = self.query_one(StateTree)
        tree.only_changes = not tree.only_changes
        self._show_state()

    def action_full(self) -> None:
        """Show long values in full, or cut."""
        self.full = not self.full
        self.show_page()

    def action_hit(self, direction: int) -> None:
        """Move to another step that contains the search text."""
        if not self._text:
            self.action_ask("search")
        else:
            self._moved(self.cursor.to_text(self._text, direction), f"{self._text!r} was not found")

    def action_theme(self) -> None:
        """Change between light and dark."""
        self.theme = "textual-light" if self.theme == "textual-dark" else "textual-dark"

    def action_keys(self) -> None:
        """Show the keys."""
        self._say(KEYS)

    def action_leave(self, code: int) -> None:
        """End the replay."""
        self.exit(code)

    def action_ask(self, what: str) -> None:
        """Ask for a step's number, or a text."""
        prompt = self.query_one("#prompt", Input)
        prompt.placeholder, prompt.value = what, ""
        prompt.add_class("asked")
        prompt.focus()

    def action_dismiss(self) -> None:
        """Close the prompt."""
        self.query_one("#prompt", Input).remove_class("asked")
        self.query_one(StepList).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the place entered at the prompt."""
        self.action_dismiss()
        given = event.value.strip()
        act: Callable[[str], None] = self._search if event.input.placeholder == "search" else self._go_to
        if given:
            act(given)

    def on_step_list_picked(self, event: StepList.Picked) -> None:
        """Go to the page that was clicked."""
        self._moved(self.cursor.go(event.page), "")

    def _go_to(self, given: str) -> None:
        steps = self.cursor.pages.shown_steps
        if given.isdecimal() and given.isascii() and int(given[:15]) < steps:
            self.action_go(int(given) + 1)
        else:
            self._say(f"there is no step {given}; the last one is {steps - 1}" if steps else "the run has no steps")

    def _search(self, given: str) -> None:
        self._text = given
        self.action_hit(1)


def replay_on_screen(trace: Trace, *, full: bool) -> int:
    """Replay a trace on the full screen; return the exit code."""
    return ReplayApp(trace, full=full).run() or 0
