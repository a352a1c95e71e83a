"""How a trace ends: what its last records say of the run's fate, read backwards from the end."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .lines import Lines

_AFTER_END = (b'{"kind":"event",', b'{"kind":"snapshot",')
_END = b'{"kind":"end",'
_STEP = (b'{"kind":"commit",', b'{"kind":"header",')
_WAIT = b'{"kind":"wait",'
_INPUT = b'{"kind":"input",'


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run stands: `status`, the `stop_reason` of an end, and the requests that nobody has answered yet."""

    status: str
    stop_reason: str | None = None
    waiting: tuple[dict[str, Any], ...] = ()
    record: dict[str, Any] | None = None


def lines_backwards(data: bytes, end: int) -> Iterator[tuple[int, bytes]]:
    """Give the lines before byte `end` (which follows a newline), last first, each with where it begins."""
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        yield start, data[start : end - 1]
        end = start


def find_end(data: bytes, end: int) -> int | None:
    """Give the byte where the end record in force begins: the one that no work follows; None where there is none."""
    for start, line in lines_backwards(data, end):
        if line.startswith(_END):
            return start
        if not line.startswith(_AFTER_END):
            return None
    return None


def read_ending(lines: Lines) -> Ending | None:
    """Tell how the run stands; None where `lines`, if they are only the last of a trace, are too few to tell.

    An end record that only events follow says it. Else the run waits if requests made since the last commit are
    unanswered, and was interrupted if there are none.
    """
    data, end = lines.data, lines.end
    at = find_end(data, end)
    record = lines.record_at(at).data if at is not None else None
    asked: dict[str, dict[str, Any]] = {}
    answered: set[str] = set()
    for start, line in lines_backwards(data, end if at is None else at):
        if line.startswith(_INPUT):
            answered.update(lines.record_at(start)["answers"])
        elif line.startswith(_WAIT):
            fresh = {request["id"]: request for request in lines.record_at(start)["requests"]}
            asked = fresh | asked
        elif line.startswith(_STEP):
            break
    else:
        if record is None or record["status"] == "waiting":
            return None
    waiting = tuple(request for name, request in asked.items() if name not in answered)
    if record is not None:
        status = record["status"]
        return Ending(status, record.get("stop_reason"), waiting if status == "waiting" else (), record)
    return Ending("waiting" if waiting else "interrupted", None, waiting)
