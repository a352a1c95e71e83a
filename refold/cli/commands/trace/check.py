"""`refold trace check` and `refold trace repair`: find and cut off damage."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from ....errors import TraceCorruptError
from ....traces import Trace, repair
from ....traces.file.store import SUFFIX
from ...errors import InputError
from ...render.output import console, say, write_json
from ...render.text import clean, count_text


def check_traces(paths: Sequence[Path], as_json: bool) -> int:
    """Check every record of each trace, or of each in a folder.

    Returns 1 if one is damaged.
    """
    found = [_check(path) for each in paths for path in _traces_in(each)]
    if as_json:
        write_json({"traces": found})
    else:
        out = console()
        for doc in found:
            say(out, _line(doc))
    return 0 if all(doc["ok"] for doc in found) else 1


def repair_trace(path: Path, truncate: bool, as_json: bool) -> int:
    """Cut off a trace's torn tail; return 0.

    With `truncate`, cut off all lines from the first damaged one.
    """
    done = repair(path, truncate_at_corruption=truncate)
    if as_json:
        backup = str(done.backup) if done.backup is not None else None
        write_json({"trace": str(path), "kept": done.kept, "cut": done.cut, "backup": backup})
        return 0
    kept = f"{count_text(done.kept, 'record')} kept"
    said = (
        f"{path}: nothing to repair, {kept}"
        if not done.cut
        else f"{path}: {count_text(done.cut, 'byte')} cut off, {kept}"
    )
    say(console(), Text(clean(f"{said}; the original is {done.backup}" if done.backup is not None else said)))
    return 0


def _check(path: Path) -> dict[str, Any]:
    try:
        trace = Trace.load(path)
        trace.check()
    except TraceCorruptError as error:
        return {"trace": str(path), "ok": False, "line": error.line, "reason": error.reason}
    return {"trace": str(path), "ok": True, "records": len(trace.records), "torn": len(trace.torn)}


def _line(doc: dict[str, Any]) -> Text:
    if not doc["ok"]:
        text = f"{doc['trace']}: damaged at line {doc['line']}: {doc['reason']}"
        return Text(clean(text), "red")
    torn = (
        f", and {count_text(doc['torn'], 'torn byte')} after them that resume or repair cuts off" if doc["torn"] else ""
    )
    return Text(clean(f"{doc['trace']}: {count_text(doc['records'], 'record')} whole{torn}"))


def _traces_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*" + SUFFIX))
    if not found:
        raise InputError(f"there are no traces in {path}")
    return found
