"""What `refold trace diff` does: the first place where two runs part."""

from pathlib import Path
from typing import Any

from rich.text import Text

from ..traces import ABSENT, Difference, Trace
from .out import console, say, write_json
from .text import LONG, clean, cut, value_text


def compare(left: Path, right: Path, as_json: bool) -> int:
    """Compares two traces; gives 0 where they are equal, 1 where they differ."""
    diff = Trace.load(left).diff(Trace.load(right))
    if as_json:
        found = [_json(each) for each in diff.differences]
        versions = [_json(each) for each in diff.versions]
        doc = {"equal": not diff, "step": diff.step, "phase": diff.phase, "differences": found, "versions": versions}
        write_json(doc)
        return 1 if diff else 0
    out = console()
    if diff:
        where = diff.phase if diff.phase in ("header", "end") else f"step {diff.step}, {diff.phase}"
        say(out, Text(f"the traces differ first at {where}", "bold red"))
        for each in diff.differences:
            say(out, Text(f"  {clean(each.path) or '/'}", "bold"))
            say(out, Text("    left   ", "dim").append(_value(each.left), "red"))
            say(out, Text("    right  ", "dim").append(_value(each.right), "green"))
    else:
        say(out, Text("the traces are equal", "green"))
    for each in diff.versions:
        say(
            out,
            Text(f"made with other versions: {clean(each.path)}  {_value(each.left)} | {_value(each.right)}", "dim"),
        )
    return 1 if diff else 0


def _value(value: Any) -> str:
    return "(absent)" if value is ABSENT else cut(value_text(value), LONG, "--json has all of it")


def _json(difference: Difference) -> dict[str, Any]:
    sides = {"left": difference.left, "right": difference.right}
    return {"path": difference.path} | {side: value for side, value in sides.items() if value is not ABSENT}
