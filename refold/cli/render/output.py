"""Where output goes: a console that takes text literally, plain lines where nobody watches, JSON for machines."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from typing import Any, TextIO

import orjson
from rich.console import Console
from rich.text import Text

from ...printable import printable_json
from .wrapping import hanging

_SAMPLE = 500
"""How many rows are looked at for the widths of a table's columns."""
_HELD = 2**20
"""How many characters of such rows, and bytes of a list of JSON, are held; past it, rows are printed as they come and
the list is kept in a file."""
_NARROW = 8
"""Columns are made no narrower than this, while there are wider ones."""


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
            _print(out, piece)


def write_json(value: Any) -> None:
    """Writes one JSON value in UTF-8, in a line of its own, on stdout; what hides or steers stands as an escape."""
    _write([_json(value), b"\n"])


def write_json_list(head: Mapping[str, Any], name: str, items: Iterable[Any]) -> None:
    """Writes the JSON object of `head`, which is not empty, with a list `name` behind its members.

    The items are made and written one by one, so that one at a time is held; where making one raises, nothing is
    written.
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
    except TypeError:  # orjson writes 254 levels, and a page of a replay has some around what is in the trace
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return printable_json(text).encode("utf-8", "surrogatepass")


def _write(pieces: Iterable[bytes]) -> None:
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is not None:
        for piece in pieces:
            binary.write(piece)
    else:  # a stdout that somebody replaced by one of text
        sys.stdout.write(b"".join(pieces).decode("utf-8", "surrogatepass"))
    sys.stdout.flush()


def table(
    out: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[Text]],
    numbers: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> None:
    """A table: fitted to a terminal, else plain columns that cut nothing. `numbers`: columns set to the right.

    Columns that are `whole` or numbers are the last to be made narrower.

    Rows are printed as they come: the first few hundred say how wide the columns are.
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
        widths = fitted(widths, out.width - 2 * (len(headings) - 1), (*numbers, *whole))
        for cells in chain([[Text(heading, "bold") for heading in headings]], first, coming):
            pieces = [list(hanging(cell, width)) for cell, width in zip(cells, widths, strict=True)]
            for line in range(max(map(len, pieces))):
                _print_row(out, [each[line] if line < len(each) else Text() for each in pieces], widths, numbers)
        return
    for cells in chain([[Text(heading) for heading in headings]], first, coming):
        _print_row(out, cells, widths, numbers)


def fitted(widths: Sequence[int], room: int, fixed: Sequence[int]) -> list[int]:
    """The widths made to fit: the widest columns give way first, those that are `fixed` last."""
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
    """Prints a line as it is; where nobody sees colours, past rich, which takes longer than all the rest."""
    if out.is_terminal:
        out.print(line, soft_wrap=True)
    else:
        out.file.write(line.plain + "\n")


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
