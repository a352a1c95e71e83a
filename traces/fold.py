"""States out of bytes: find the nearest snapshot, parse only what carries a patch, apply in place."""

from typing import Any

import orjson

from .errors import PatchError, TraceCorruptError, TraceError
from .lines import Lines
from .patch import run_patch
from .tail import find_end

COMMIT = b'\n{"kind":"commit",'
SNAPSHOT = b'\n{"kind":"snapshot",'
_PATCHING = (b'{"kind":"commit",', b'{"kind":"resume",', b'{"kind":"end",')


def count_commits(lines: Lines) -> int:
    """Give the number of committed steps: one more than the last commit's step."""
    at = lines.data.rfind(COMMIT, 0, lines.end)
    return 0 if at < 0 else lines.record_at(at + 1).step + 1


def commit_offset(lines: Lines, step: int) -> int:
    """Give the byte where the commit of a step begins; the steps of commits rise, so a bisection finds it."""
    low, high = 0, lines.end
    while low < high:
        middle = (low + high) // 2
        at = lines.data.find(COMMIT, middle, high)
        found = lines.record_at(at + 1).step if at >= 0 else step + 1
        if found == step:
            return at + 1
        if found < step:
            low = at + len(COMMIT)
        else:
            high = middle if at < 0 or at > middle else middle
    raise TraceError(f"the trace has no commit of step {step}")


def state_at(lines: Lines, step: int, steps: int) -> Any:
    """Give the document before commit `step`; for `step == steps` the one after the last, without a trailing end."""
    if step < steps:
        return fold_to(lines, commit_offset(lines, step))
    end = find_end(lines.data, lines.end)
    return fold_to(lines, lines.end if end is None else end)


def fold_to(lines: Lines, stop: int) -> Any:
    """Give the document that all patches before byte `stop` (the beginning of a line) lead to."""
    data = lines.data
    at = data.rfind(SNAPSHOT, 0, stop) + 1
    if not at:
        raise TraceError("the trace has no state: the run ended before init_state gave one")
    after = data.find(b"\n", at) + 1
    doc = orjson.loads(data[at : after - 1])["state"]
    found = [line for line in data[after:stop].split(b"\n") if line.startswith(_PATCHING)]
    try:
        for record in orjson.loads(b"[" + b",".join(found) + b"]"):
            if record.get("patch"):
                doc = run_patch(doc, record["patch"])
    except (orjson.JSONDecodeError, PatchError) as error:
        raise _locate(lines, after, stop) from error
    return doc


def _locate(lines: Lines, start: int, stop: int) -> TraceError:
    lines.check_chain()
    return TraceCorruptError("a patch does not fit the state before it", lines.number(start), path=lines.path)
