"""A trace's row in the list of runs.

The row's facts come from the head and the tail of the file. A small file is read as a whole, and its row is complete.
In a large file, errors and shape are counted later, in the background: until then the row is `partial`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..analysis.trace_list import one_line
from ..errors import NotATraceError, RecordError, TraceCorruptError, TraceError
from ..file.append_only import trace_name
from ..file.lines import START, Lines, begins_a_trace
from ..file.record import Record
from ..file.tail import read_ending
from ..states.fold import COMMIT
from .found_files import as_text
from .step_facts import RARE, OpenStep, Used, brief, clipped, turn_error, used_after
from .trace_file import TraceFile

_WHOLE = 1 << 17
"""Up to this size, as long as head and tail together, a file is read as a whole."""
_ENDS = 1 << 16
_DECIDED = re.compile(rb'\{"kind":"decide","seq":\d+,"step":\d+,"at":[^,]+,"decision":\{"mode":"([a-z]+)"')
_END = b'{"kind":"end",'
SHAPE = 48
"""The number of columns in a run's shape."""
_TAGS = 20
_RESULT = 120
_NAME = 240
_LINE = 240
"""The longest failure reason or question, in characters: a row has one line for it."""
_FIRST_STATE = 1 << 20
"""The longest first state, in bytes, that is parsed for an Agent's name: more would cost more than the name is
worth."""
_DECIDE = b'{"kind":"decide",'
_SNAPSHOT = b'{"kind":"snapshot",'
_OBJECTIVE = 4_000
"""The longest objective: an answer lists a hundred rows, and a stranger's text may have megabytes."""


@dataclass
class RunFacts:
    """The facts of one trace in the list of runs.

    Families and ids are found in the folder.
    """

    file: str
    run_id: str
    task: str = ""
    objective: str = ""
    module: str = ""
    agent: bool = False
    name: str = ""
    """The Agent's name, if the run is an Agent's and the trace holds its first state."""
    status: str = "corrupt"
    reason: str | None = None
    problem: str | None = None
    error: str | None = None
    """The type and message of a failed run's exception, in one line."""
    question: str | None = None
    """The first open question of a waiting run, in one line."""
    result: str | None = None
    """The final result in one line."""
    started: float | None = None
    changed: float = 0.0
    seconds: float | None = None
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    errors: int = 0
    waiting: int = 0
    tags: tuple[str, ...] = ()
    parent: tuple[str, str, int, int | None] | None = None
    """Kind, run, step and candidate."""
    shape: str = " " * SHAPE
    bytes: int = 0
    partial: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a JSON object, for the index."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, doc: Any) -> "RunFacts":
        """Read a document of `to_dict`.

        Raises `ValueError` for any other document, because the index may be a stranger's.
        """
        if not isinstance(doc, dict) or doc.keys() != _NAMES:
            raise ValueError(f"a row must have the fields of a RunFacts, got {doc!r:.80}")
        for name, kinds in _KINDS.items():
            if not isinstance(doc[name], kinds) or (type(doc[name]) is bool and bool not in kinds):
                raise _invalid(doc, name)
        parent = doc["parent"]
        if not all(isinstance(tag, str) for tag in doc["tags"]):
            raise _invalid(doc, "tags")
        if len(doc["shape"]) != SHAPE:
            raise _invalid(doc, "shape")
        if parent is not None:
            kind, run, step, candidate = parent
            if not (isinstance(kind, str) and isinstance(run, str) and isinstance(step, int)):
                raise _invalid(doc, "parent")
            parent = (kind, run, step, candidate if isinstance(candidate, int) else None)
        return cls(**{**doc, "tags": tuple(doc["tags"]), "parent": parent})


def _invalid(doc: dict[str, Any], name: str) -> ValueError:
    return ValueError(f"the row of {doc['file']!r:.80} has an invalid {name}: {doc[name]!r:.80}")


_NONE = type(None)
_NUMBER = (int, float)
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("file", "run_id", "task", "objective", "module", "name", "status", "shape"), (str,)),
    **dict.fromkeys(("reason", "problem", "error", "question", "result"), (str, _NONE)),
    **dict.fromkeys(("started", "seconds", "cost"), (*_NUMBER, _NONE)),
    **dict.fromkeys(("steps", "tokens_in", "tokens_out", "errors", "waiting", "bytes"), (int,)),
    "changed": _NUMBER,
    "agent": (bool,),
    "partial": (bool,),
    "tags": (list,),
    "parent": (list, _NONE),
}


_NAMES = frozenset(field.name for field in fields(RunFacts))


def read_row(path: Path, file: str, *, links: bool = False) -> RunFacts:
    """Return the row of one trace; if unreadable, with its `problem`."""
    row = RunFacts(file, as_text(trace_name(path)))
    try:
        opened = TraceFile(path, links=links)
    except (TraceError, OSError) as error:
        row.problem = one_line(error)
        return row
    try:
        row.bytes, row.changed = opened.size, opened.mtime
        _read(opened, row)
    except (TraceError, RecordError, OSError) as error:
        row.status = "corrupt"
        row.problem = error.reason if isinstance(error, TraceCorruptError) else _told(error)
    finally:
        opened.close()
    row.problem = None if row.problem is None else as_text(row.problem)
    return row


def _told(error: Exception) -> str:
    return one_line(error) if isinstance(error, (TraceError, OSError)) else str(error)


def _read(file: TraceFile, row: RunFacts) -> None:
    size = row.bytes
    whole = size <= _WHOLE
    head = file.read(0, size if whole else _ENDS)
    newline = head.find(b"\n")
    if newline < 0 and len(head) < size:
        header_line = next((line for _, line in file.lines(0)), b"")
    elif newline < 0:
        if not begins_a_trace(head):
            raise NotATraceError(file.path)
        row.status, row.problem = "interrupted", "the run ended before its first record was whole"
        return
    else:
        header_line = head[:newline]
    if not header_line.startswith(START):
        raise NotATraceError(file.path)
    header = Record.parse(header_line, file.path)
    if header.kind != "header":
        raise TraceCorruptError("the trace does not begin with its header", 1, path=file.path)
    _head(header, row)
    if row.agent:
        row.name = _agent_name(file, head)
    length = _ENDS
    while True:
        start = 0 if whole else max(0, size - length)
        data = head if whole else file.read(start, size)
        if start:  # the first line of the tail is cut off
            first = data.find(b"\n") + 1
            data = data[first:] if first else b""
        lines = Lines(data, file.path)
        commit = lines.data.rfind(COMMIT, 0, lines.end)
        ending = read_ending(lines) if commit >= 0 or not start else None
        if ending is not None or not start:
            break
        length *= 16
    if ending is None:
        raise TraceCorruptError("the trace has no records", 1, path=file.path)
    two = lines.data.rfind(b"\n", 0, lines.end - 1) >= 0  # a line's hash covers the hash of the line before
    if (two or not start) and not lines.last_fits():
        raise TraceCorruptError("the last line does not fit its hash", len(lines), path=file.path)
    row.status, row.waiting = ending.status, len(ending.waiting)
    row.reason = None if ending.stop_reason is None else ending.stop_reason[:_NAME]
    if ending.waiting:
        request = ending.waiting[0]
        row.question = clipped(request.get("prompt") or request.get("kind") or "", _LINE)
    _tail(lines, commit, ending.record, row)
    if whole:
        row.errors, row.shape = errors_and_shape(line for line in lines.data[: lines.end].split(b"\n")[:-1])
    else:
        row.partial = True


def _head(header: Record, row: RunFacts) -> None:
    task = header.get("task") or {}
    row.run_id = header.get("run_id") or row.run_id
    row.task = (task.get("id") or "")[:_NAME]
    row.objective = (task.get("objective") or "")[:_OBJECTIVE]
    row.module = (header.get("module") or "")[:_NAME]
    row.agent = str(header.get("state") or "").startswith("refold.modules.agent.")
    row.started = header.at
    tags = (task.get("metadata") or {}).get("tags")
    if isinstance(tags, list):
        row.tags = tuple(tag[:_NAME] for tag in tags if isinstance(tag, str))[:_TAGS]
    link = header.get("parent")
    if link is not None:
        row.parent = (link["kind"], link["run"], link["step"], link.get("candidate"))


def _tail(lines: Lines, commit: int, end: dict[str, Any] | None, row: RunFacts) -> None:
    used = Used()
    if commit >= 0:
        record = lines.record_at(commit + 1)
        row.steps = record.step + 1
        seconds = record.get("seconds")
        used = used_after(record.get("usage"), seconds, used)
        row.seconds = float(seconds) if seconds is not None else None
    if end is not None:
        if end.get("final_result") is not None:
            row.result = clipped(brief(end["final_result"]), _RESULT)
        if row.status == "failed":
            error = end.get("error") or _turn_error(lines)
            row.error = None if error is None else clipped(f"{error['type']}: {error['message']}", _LINE)
        usage = end.get("usage") or {}
        used = used_after(usage, usage.get("seconds"), used)
        row.seconds = float(usage["seconds"]) if "seconds" in usage else row.seconds
    row.tokens_in, row.tokens_out = used.tokens_in, used.tokens_out
    row.cost = used.cost if not used.unpriced else None
    start = lines.data.rfind(b"\n", 0, lines.end - 1) + 1
    row.changed = lines.record_at(start).at


def _agent_name(file: TraceFile, head: bytes) -> str:
    """Return an Agent's name from its first state, or "" if unknown."""
    at = head.find(b"\n" + _SNAPSHOT) + 1
    stop = head.find(b"\n", at) if at else -1
    line: bytes | None = head[at:stop] if stop >= 0 else None
    if line is None:  # the head ends before the first state does
        line = next((each for _, each in file.lines(0, _FIRST_STATE) if each.startswith(_SNAPSHOT)), None)
    if line is None or len(line) > _FIRST_STATE:
        return ""
    state = Record.parse(line).get("state")
    agent = state.get("agent") if isinstance(state, dict) else None
    name = agent.get("name") if isinstance(agent, dict) else None
    return clipped(name, _NAME) if isinstance(name, str) else ""


def _turn_error(lines: Lines) -> Any:
    """Return the error of the last decision, which ended an Agent's run."""
    at = lines.data.rfind(b"\n" + _DECIDE, 0, lines.end) + 1
    return turn_error(lines.record_at(at)["decision"]) if at else None


def errors_and_shape(lines: Iterable[bytes]) -> tuple[int, str]:
    """Return the number of failures, and the run's shape.

    A failure is a failed action or effect. The shape has one character a column: the rarest mode in it. Only lines that
    matter to failures or shape are parsed.
    """
    modes: list[str] = []
    total = 0
    step = OpenStep(0, Used())
    for line in lines:
        kind = line[9:10]
        if kind in b"seh" and not line.startswith(_END):  # snapshot, event, header
            continue
        if kind == b"i" or (kind == b"o" and b'"error' not in line):
            step.records += 1
            continue
        if kind == b"d" and (mode := _DECIDED.match(line)) is not None:
            step.records += 1
            step.decision = {"mode": mode[1].decode()}
            continue
        try:
            if kind == b"c":
                errors = step.errors
                if b'"error' in line:
                    errors = step.close(0, Record.parse(line), 0, 0).errors
                total += errors
                modes.append(step.mode(errors))
                step = OpenStep(0, Used())
            else:
                step.see(Record.parse(line))
        except (RecordError, TraceCorruptError):
            break  # the problem is reported when the run is opened
    if step.is_begun:
        errors = step.close(0, None, 0, 0).errors
        total += errors
        modes.append(step.mode(errors))
    return total, shape_of("".join(modes))


def shape_of(modes: str, columns: int = SHAPE) -> str:
    """Return modes, a character a step, in this many columns.

    A column has its rarest mode: `e` marks errors in at most half of the column's steps. Blanks follow if there are
    fewer steps.
    """
    count = len(modes)
    if count <= columns:
        return modes.ljust(columns)
    rank = {mode: place for place, mode in enumerate(RARE)}
    parts = [modes[i * count // columns : (i + 1) * count // columns] for i in range(columns)]
    rarest = [min(part, key=lambda mode: rank.get(mode, len(RARE))) for part in parts]
    few = (mode == "E" and 2 * part.count("E") <= len(part) for mode, part in zip(rarest, parts, strict=True))
    return "".join("e" if some else mode for mode, some in zip(rarest, few, strict=True))
