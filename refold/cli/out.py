"""Where output goes: a console that takes text literally, plain lines where nobody watches, JSON for machines."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..printable import printable_json
from .wrapping import hanging


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raises the BrokenPipeError that rich handles when it calls this; rich's own would exit the process."""
        raise


def console(file: TextIO | None = None) -> Console:
    """A console on stdout (or `file`) that reads no markup and highlights nothing."""
    return _Console(file=file or sys.stdout, markup=False, emoji=False, highlight=False)


def is_terminal() -> bool:
    """Whether a person watches stdout, on a terminal that can do more than print."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def can_ask() -> bool:
    """Whether a person is there who can type an answer."""
    return is_terminal() and sys.stdin.isatty()


def say(out: Console, *lines: Text) -> None:
    """Prints lines: broken to a terminal's width; where nobody watches, as they are."""
    for line in lines:
        for piece in hanging(line, out.width) if is_terminal() else (line,):
            out.print(piece, soft_wrap=True)


def write_json(value: Any) -> None:
    """Writes one JSON value in UTF-8, in a line of its own, on stdout; what hides or steers stands as an escape."""
    sys.stdout.flush()
    data = printable_json(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))
    try:
        sys.stdout.buffer.write(data)
    except AttributeError:  # a stdout that somebody replaced by one of text
        sys.stdout.write(data.decode())
    sys.stdout.flush()


def table(out: Console, headings: Sequence[str], rows: Sequence[Sequence[Text]], numbers: Sequence[int] = ()) -> None:
    """A table: fitted to a terminal, else plain columns that cut nothing. `numbers`: columns set to the right."""
    if is_terminal():
        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for index, heading in enumerate(headings):
            right = index in numbers
            grid.add_column(heading, justify="right" if right else "left", no_wrap=right, overflow="fold")
        for row in rows:
            grid.add_row(*row)
        out.print(grid)
        return
    lines = [[Text(heading) for heading in headings], *rows]
    widths = [max(cells[index].cell_len for cells in lines) for index in range(len(headings))]
    for cells in lines:
        line = Text()
        for index, cell in enumerate(cells):
            pad = " " * (widths[index] - cell.cell_len)
            last = index == len(cells) - 1
            line.append_text(Text(pad) + cell if index in numbers else cell if last else cell + Text(pad))
            line.append("" if last else "  ")
        say(out, line)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Sends what a module, its tools and their child processes print to stderr, so that stdout stays ours."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 1)
        os.close(saved)
