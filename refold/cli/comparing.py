"""What `refold trace diff` does: the first place where two runs part, and what that made of their states."""

from pathlib import Path
from typing import Any

from rich.text import Text

from ..traces import ABSENT, Change, Difference, Trace, TraceDiff
from .out import console, say, write_json
from .step_view import change_lines
from .text import LONG, clean, count_text, cut, value_text

_SHOWN = 40
_HINT = "--json has all of it"


def compare(left: Path, right: Path, as_json: bool) -> int:
    """Compares two traces; gives 0 where they are equal, 1 where they differ."""
    diff = Trace.load(left).diff(Trace.load(right))
    if as_json:
        found = [_json(each) for each in diff.differences]
        versions = [_json(each) for each in diff.versions]
        doc = {"equal": not diff, "step": diff.step, "phase": diff.phase, "differences": found, "versions": versions}
        write_json({**doc, "states": [_change_json(each) for each in diff.states]})
        return 1 if diff else 0
    out = console()
    if diff:
        where = diff.phase if diff.phase in ("header", "end") else f"step {diff.step}, {diff.phase}"
        say(out, Text(f"the traces differ first at {where}", "bold red"))
        for each in () if _says_states(diff) else diff.differences:
            say(out, Text(f"  {clean(each.path) or '/'}", "bold"))
            say(out, Text("    left   ", "dim").append(_value(each.left), "red"))
            say(out, Text("    right  ", "dim").append(_value(each.right), "green"))
        if diff.states:
            say(out, Text(f"the states {_after(diff)}", "bold"))
            for change in diff.states[:_SHOWN]:
                say(out, *change_lines(change, LONG, _HINT, ("left ", "right")))
            if len(diff.states) > _SHOWN:
                say(out, Text(f"  … {count_text(len(diff.states) - _SHOWN, 'more path')}; {_HINT}", "dim"))
        elif diff.phase != "header":
            say(out, Text(f"the states {_after(diff)} are equal", "dim"))
    else:
        say(out, Text("the traces are equal", "green"))
    for each in diff.versions:
        say(
            out,
            Text(f"made with other versions: {clean(each.path)}  {_value(each.left)} | {_value(each.right)}", "dim"),
        )
    return 1 if diff else 0


def _says_states(diff: TraceDiff) -> bool:
    """Whether all that differs is in the states, which are shown anyway, their lists aligned."""
    return bool(diff.states) and all(each.path.startswith("/state") for each in diff.differences)


def _after(diff: TraceDiff) -> str:
    if diff.phase in ("init", "end"):
        return "at the beginning" if diff.phase == "init" else "at the end"
    return f"after step {diff.step}"


def _change_json(change: Change) -> dict[str, Any]:
    sides = {"left": change.old} if change.op != "add" else {}
    return {"path": change.path} | sides | ({"right": change.new} if change.op != "remove" else {})


def _value(value: Any) -> str:
    return "(absent)" if value is ABSENT else cut(value_text(value), LONG, _HINT)


def _json(difference: Difference) -> dict[str, Any]:
    sides = {"left": difference.left, "right": difference.right}
    return {"path": difference.path} | {side: value for side, value in sides.items() if value is not ABSENT}
