"""Output: plain lines, tables, and JSON for machines."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, TextIO

import orjson
from rich.console import Console
from rich.text import Text

from ...printable import printable, printable_json
from .line_breaks import hanging

_SAMPLE = 500
"""The number of rows that a table measures for the widths of its columns."""
_HELD = 2**20
"""The limit of what is kept in memory, in characters of these rows or bytes of a JSON list. Beyond it, rows are printed
at once, and the list goes to a temporary file.
"""
_NARROW = 8
"""The width below which a column is narrowed only if no wider one is left."""
_LEGIBLE = 5
"""The width below which a cut column cannot be read: its rows are then printed as paragraphs."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError that rich is handling.

        Rich's own method would exit the process.
        """
        raise


def console(file: TextIO | None = None) -> Console:
    """Return a console without markup and highlighting, on stdout or `file`."""
    return _Console(file=file or sys.stdout, markup=False, emoji=False, highlight=False)


@contextlib.contextmanager
def stdout_bytes() -> Iterator[BinaryIO]:
    """Yield stdout for bytes, which come after the text printed so far."""
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


def is_terminal() -> bool:
    """Return whether stdout is a terminal that can do more than print."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def can_ask() -> bool:
    """Return whether a person at a terminal can type an answer."""
    return is_terminal() and sys.stdin.isatty()


def say(out: Console, *lines: Text) -> None:
    """Print lines, broken to a terminal's width, unbroken in a pipe."""
    for line in lines:
        for piece in hanging(line, out.width) if is_terminal() else (line,):
            _print(out, piece)


def write_json(value: Any) -> None:
    """Write a JSON value as a line of UTF-8, control characters escaped."""
    _write([_json(value), b"\n"])


def write_json_list(head: Mapping[str, Any], name: str, items: Iterable[Any]) -> None:
    """Write a JSON object: a non-empty `head`, and a list named `name`.

    Items are made and written one by one, so that only one is in memory. If making an item raises, nothing is written.
    """
    with SpooledTemporaryFile(_HELD) as kept:
        kept.write(_json(head)[:-1] + b"," + _json(name) + b":[")
        for number, item in enumerate(items):
            kept.write(b"," * (number > 0) + _json(item))
        kept.write(b"]}\n")
        kept.seek(0)
        _write(iter(lambda: kept.read(_HELD), b""))


def _json(value: Any) -> bytes:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:  # deeper than orjson's 254 levels: a replay's page adds some levels around a value of the trace
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return printable_json(text).encode("utf-8", "surrogatepass")


def _write(pieces: Iterable[bytes]) -> None:
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        for piece in pieces:
            binary.write(piece)
    else:  # a caller replaced stdout by a text-only stream
        sys.stdout.write(b"".join(pieces).decode("utf-8", "surrogatepass"))
    sys.stdout.flush()


def table(
    out: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[Text]],
    numbers: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> None:
    """Print a table: fitted to a terminal, uncut in a pipe.

    In a terminal that is too narrow for its columns, each row is a paragraph. `numbers` are the right-aligned columns.
    They and the `whole` ones are narrowed last. Rows are printed as they come: only the first few hundred decide the
    widths.
    """
    coming = iter(rows)
    first: list[list[Text]] = []
    held = 0
    for cells in islice(coming, _SAMPLE):
        first.append(list(cells))
        held += sum(map(len, first[-1]))
        if held > _HELD:
            break
    columns = range(len(headings))
    widths = [max(len(headings[i]), *(cells[i].cell_len for cells in first), 0) for i in columns]
    if is_terminal():
        wanted, widths = widths, fitted(widths, out.width - 2 * (len(headings) - 1), (*numbers, *whole))
        if any(width < min(most, _LEGIBLE) for width, most in zip(widths, wanted, strict=True)):
            for cells in chain(first, coming):
                _print_stacked(out, headings, cells)
            return
        for cells in chain([[Text(heading, "bold") for heading in headings]], first, coming):
            pieces = [list(hanging(cell, width)) for cell, width in zip(cells, widths, strict=True)]
            for line in range(max(map(len, pieces))):
                _print_row(out, [each[line] if line < len(each) else Text() for each in pieces], widths, numbers)
        return
    for cells in chain([[Text(heading) for heading in headings]], first, coming):
        _print_row(out, cells, widths, numbers)


def _print_stacked(out: Console, headings: Sequence[str], cells: Sequence[Text]) -> None:
    """Print a row as a paragraph.

    The first cell is unbroken, so that it can be copied; the others are below it.
    """
    _print(out, cells[0])
    others = zip(headings[1:], cells[1:], strict=True)
    facts = [Text(f"{name} " if name else "") + cell for name, cell in others if cell.plain]
    if facts:
        say(out, Text("  ") + Text(", ").join(facts))


def fitted(widths: Sequence[int], room: int, fixed: Sequence[int]) -> list[int]:
    """Return the widths, narrowed to `room`.

    The widest columns are narrowed first, `fixed` ones last.
    """
    found = list(widths)
    while sum(found) > room:
        order = [i for i in range(len(found)) if i not in fixed and found[i] > _NARROW] or range(len(found))
        widest = max(order, key=lambda i: found[i])
        if found[widest] <= 1:
            break
        found[widest] -= 1
    return found


def _print_row(out: Console, cells: Sequence[Text], widths: Sequence[int], numbers: Sequence[int]) -> None:
    line = Text()
    for index, cell in enumerate(cells):
        pad = " " * (widths[index] - cell.cell_len)
        last = index == len(cells) - 1
        line.append_text(Text(pad) + cell if index in numbers else cell if last else cell + Text(pad))
        line.append("" if last else "  ")
    _print(out, line)


def _print(out: Console, line: Text) -> None:
    """Print a line unchanged.

    Its colours are omitted if its text contains control characters. In a pipe, rich is bypassed: it costs more than all
    other work.
    """
    shown = printable(line.plain, lines=True)
    if shown != line.plain:
        line = Text(shown)
    if out.is_terminal:
        out.print(line, soft_wrap=True)
    else:
        out.file.write(line.plain + "\n")


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect the output of modules, tools and child processes to stderr.

    It redirects the file descriptor, too, so that stdout stays free for the command's own output.
    """
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
