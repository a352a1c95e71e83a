"""`refold replay`: step through a trace with keys, or print its steps."""

from importlib.util import find_spec
from pathlib import Path

from rich.console import Console, ScreenContext
from rich.segment import Segment, SegmentLines
from rich.text import Text

from ....traces import Trace
from ....traces.stores import RunRef
from ...errors import INTERRUPTED, InputError
from ...input.find_trace import load_trace
from ...input.keys import ReadKey, keyboard, stop_process
from ...render.line_breaks import hanging
from ...render.output import can_ask, console, say, write_json, write_json_list
from ...render.step_view import step_json
from ...render.summary import Summary
from .pages import Pages, heading
from .stepper import Stepper

_BAR = 20
_HINT_KEY = "f shows all"
_HINT_OPTION = "--full shows all"


def replay_trace(
    path: Path | RunRef, step: int | None, show_all: bool, full: bool, as_json: bool, plain: bool = False
) -> int:
    """Show a trace: with keys at a terminal, otherwise printed.

    With the extra `tui`, a terminal shows the full screen, unless `plain` is set.
    """
    trace = load_trace(path)
    pages = Pages(trace)
    number = _page(pages, step)
    if as_json:
        _write(trace, pages, number)
    elif number is not None:
        _print(pages, [number], full)
    elif show_all or not can_ask():
        _print(pages, range(len(pages)), full)
    elif not plain and find_spec("textual") is not None:
        from ...tui.app import replay_on_screen

        return replay_on_screen(trace, full=full)
    else:
        return step_through(Stepper(pages, full=full), console())
    return 0


def step_through(stepper: Stepper, out: Console) -> int:
    """Show one page at a time and return the exit code."""
    while True:
        with keyboard() as read, out.screen(hide_cursor=True) as screen:
            key = _turn_pages(stepper, out, read, screen)
        if key != "ctrl-z":
            return INTERRUPTED if key == "ctrl-c" else 0
        stop_process()


def _turn_pages(stepper: Stepper, out: Console, read: ReadKey, screen: ScreenContext) -> str:
    """Handle keys until one ends or suspends the replay; return that key.

    The screen is drawn again when its size changes.
    """
    while True:
        size = out.size
        height = max(1, size.height - 4)
        screen.update(SegmentLines(_screen(stepper, out, height), new_lines=True))
        key = None
        while key is None and out.size == size:
            key = read(0.3)
        if key in ("ctrl-c", "ctrl-z"):
            return key
        if key is not None:
            stepper.press(key, height)
        if stepper.done:
            return "q"


def _screen(stepper: Stepper, out: Console, height: int) -> list[list[Segment]]:
    """Return the whole screen.

    It has a head of two lines, the visible part of the page, a rule, and the keys.
    """
    pages = stepper.pages
    head = heading(pages.trace)
    title = pages.title(stepper.page).append("  ").append_text(_place(stepper.page, len(pages) - 1))
    body = [
        line
        for text in pages.lines(stepper.page, stepper.full, _HINT_KEY, stepper.state)
        for piece in hanging(text, out.width)
        for line in _fitted(out, piece)
    ]
    stepper.offset = max(0, min(stepper.offset, len(body) - height))
    shown = body[stepper.offset : stepper.offset + height]
    below = len(body) - stepper.offset - len(shown)
    more = f" {below} more lines below " if below else ""
    blank = [Segment(" " * out.width)]
    return [
        *_fitted(out, head),
        *_fitted(out, title),
        *shown,
        *[blank] * (height - len(shown)),
        *_fitted(out, Text(more.center(out.width, "─"), "dim")),
        *_fitted(out, Text(stepper.footer(), "dim" if not stepper.message else "yellow")),
    ]


def _fitted(out: Console, text: Text) -> list[list[Segment]]:
    text.truncate(out.width, overflow="ellipsis")
    text.no_wrap = True
    return out.render_lines(text, out.options.update(height=None), pad=True)[:1]


def _place(page: int, last: int) -> Text:
    filled = page * _BAR // last
    return Text("━" * filled, "cyan").append("─" * (_BAR - filled), "dim")


def _page(pages: Pages, step: int | None) -> int | None:
    if step is None:
        return None
    if not 0 <= step < pages.shown_steps:
        there = f"its steps are 0 to {pages.shown_steps - 1}" if pages.shown_steps else "it has no steps"
        raise InputError(f"run {pages.trace.run_id} has no step {step}; {there}")
    return step + 1


def _print(pages: Pages, numbers: "range | list[int]", full: bool) -> None:
    out = console()
    say(out, heading(pages.trace))
    for number in numbers:
        say(out, Text(), pages.title(number), *pages.lines(number, full, _HINT_OPTION))


def _write(trace: Trace, pages: Pages, number: int | None) -> None:
    if number is not None:
        write_json(step_json(pages.step(number)))
        return
    steps = (step_json(pages.step(number)) for number in range(1, pages.shown_steps + 1))
    write_json_list({**Summary.of_trace(trace).to_dict(), "first_state": trace.first_state}, "steps", steps)
