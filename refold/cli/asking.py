"""Asks the person at the terminal what became of calls whose fate nobody knows."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .out import console, is_terminal
from .text import LONG, clean, cut, value_text


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return is_terminal() and sys.stdin.isatty()


def ask_fates(requests: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The answers, by request id; {} where there is a question that is no such one, or one was left open."""
    answers: dict[str, dict[str, Any]] = {}
    for request in requests:
        if request.get("kind") != "unknown_effect":
            return {}
        try:
            answer = _ask(request)
        except EOFError:
            answer = None
        if answer is None:
            return {}
        answers[str(request["id"])] = answer
    return answers


def _ask(request: Mapping[str, Any]) -> dict[str, Any] | None:
    details = request.get("details") or {}
    out = console()
    out.print()
    out.print(f"{clean(str(details.get('name')))} was begun, and nobody knows whether it happened.", style="bold cyan")
    out.print(f"  arguments  {cut(value_text(details.get('args')), LONG)}")
    out.print(f"  key        {clean(str(details.get('key')))}")
    while True:
        said = (
            input("Did it? [r]an with a result, [f]ailed, [t]ry it again, [q]uit and leave it open: ").strip().lower()
        )
        if said in ("r", "ran"):
            return {"ran": _result()}
        if said in ("f", "failed"):
            return {"failed": input("Failed with which text? ")}
        if said in ("t", "try", "retry"):
            return {"retry": True}
        if said in ("q", "quit"):
            return None


def _result() -> Any:
    while True:
        text = input("With which result, as JSON? ")
        try:
            return json.loads(text)
        except ValueError as error:
            print(f'That is not JSON ({error}). Text goes in quotes: "done"; no result is null.')
