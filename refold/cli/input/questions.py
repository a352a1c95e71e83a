"""Asks the person at the terminal a run's open requests."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from ..render.output import console
from .forms import Read, fill
from .requests import request_rows


def ask_person(requests: Sequence[Mapping[str, Any]], read: Read = input) -> dict[str, Any]:
    """Ask each request; return the answers by id, without open ones."""
    answers: dict[str, Any] = {}
    out = console()
    for number, request in enumerate(requests, 1):
        out.print()
        of = f"{number} of {len(requests)}: " if len(requests) > 1 else ""
        for row, (label, text) in enumerate(request_rows(request, time.time())):
            line = Text(of, "dim").append_text(text) if row == 0 else Text(f"  {label}  ", "dim").append_text(text)
            out.print(line, soft_wrap=True)
        try:
            if request.get("kind") == "unknown_effect":
                answers[str(request["id"])] = _fate(read)
            else:
                out.print(Text("  Ctrl-D leaves it open", "dim"))
                answers[str(request["id"])] = fill(request.get("schema"), out, read)
        except EOFError:
            out.print(Text("\nleft open", "dim"))
    return answers


def _fate(read: Read) -> dict[str, Any]:
    """Return the person's report on an unknown effect.

    Raises EOFError if the person leaves it open.
    """
    while True:
        said = (
            read("What happened? [r]an with a result, [f]ailed, [t]ry it again, [q]uit and leave it open: ")
            .strip()
            .lower()
        )
        if said in ("r", "ran"):
            return {"ran": _result(read)}
        if said in ("f", "failed"):
            return {"failed": read("With which error message? ")}
        if said in ("t", "try", "retry"):
            return {"retry": True}
        if said in ("q", "quit"):
            raise EOFError


def _result(read: Read) -> Any:
    while True:
        text = read("With which result, as JSON? ")
        try:
            return json.loads(text)
        except ValueError as error:
            print(f'That is not JSON ({error}). Text goes in quotes: "done"; no result is null.')
