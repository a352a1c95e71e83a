"""States out of bytes: find the nearest snapshot, parse only what carries a patch, apply in place."""

import gc
from collections.abc import Iterable
from typing import Any

import orjson

from .errors import PatchError, TraceCorruptError, TraceError
from .lines import Lines
from .patch import Operation, look, run_operation, run_patch, split_pointer
from .tail import find_end

COMMIT = b'\n{"kind":"commit",'
SNAPSHOT = b'{"kind":"snapshot",'
_BATCH = 32
_DULL = bytes(letter in b"hdiowb" for letter in range(256))
"""Which first letters of a kind belong to records without a state or a patch (and to them alone)."""
_PATCHING = (b'{"kind":"resume",', b'{"kind":"end",')
_EVENT = b'{"kind":"event",'


def count_commits(lines: Lines) -> int:
    """Give the number of committed steps: one more than the last commit's step."""
    at = lines.data.rfind(COMMIT, 0, lines.end)
    return 0 if at < 0 else lines.record_at(at + 1).step + 1


def commit_offset(lines: Lines, step: int) -> int:
    """Give the byte where the commit of a step begins; the steps of commits rise, so a bisection finds it."""
    low, high = 0, lines.end
    while low < high:
        middle = (low + high) // 2
        at = lines.data.find(COMMIT, middle, min(high + len(COMMIT) - 1, lines.end))
        found = lines.record_at(at + 1).step if at >= 0 else step + 1
        if found == step:
            return at + 1
        if found < step:
            low = at + len(COMMIT)
        else:
            high = middle
    lines.check_chain()
    raise TraceCorruptError(f"the commit of step {step} is missing", lines.number(lines.end), path=lines.path)


def state_at(lines: Lines, step: int, steps: int) -> Any:
    """Give the document before commit `step`; for `step == steps` the one after the last, without a trailing end."""
    if step < steps:
        return fold_to(lines, commit_offset(lines, step), step)
    end = find_end(lines.data, lines.end)
    return fold_to(lines, lines.end if end is None else end, steps)


def fold_to(lines: Lines, stop: int, step: int) -> Any:
    """Give the document that all patches before byte `stop` (the beginning of a line) lead to.

    `step` is how many commits stand before it: where there are fewer or more, the trace is corrupt.
    """
    data, found, commits, newline = lines.data, list[tuple[int, int]](), 0, stop - 1
    rfind, dull = data.rfind, _DULL
    while newline > 0:
        end = newline
        newline = rfind(b"\n", 0, end)
        if dull[data[newline + 10]]:  # the kind's first letter
            continue
        start = newline + 1
        if data.startswith(COMMIT[1:], start):
            commits += 1
            found.append((start, end))
        elif data.startswith(_PATCHING, start):
            found.append((start, end))
        elif data.startswith(SNAPSHOT, start):
            break
        elif not data.startswith(_EVENT, start):
            raise _corrupt(lines, start, stop, "the line has not the form of a record")
    else:
        raise TraceError("the trace has no state: the run ended before init_state gave one")
    snapshot = lines.record_at(start)
    if snapshot.step + commits != step:
        raise _corrupt(lines, start, stop, f"commits are missing between steps {snapshot.step} and {step}")
    found.reverse()
    collecting = gc.isenabled()
    gc.disable()  # JSON has no cycles; the collector would only walk what is being built, for a third of the time
    try:
        doc = orjson.loads(snapshot.raw)["state"]
        for first in range(0, len(found), _BATCH):
            doc = fold_patches(doc, _patches(data, found[first : first + _BATCH]))
    except (orjson.JSONDecodeError, PatchError, KeyError, TypeError) as error:
        raise _corrupt(lines, start, stop, "a patch does not fit the state before it") from error
    finally:
        if collecting:
            gc.enable()
    return doc


def fold_patches(doc: Any, patches: Iterable[Iterable[Operation]]) -> Any:
    """Apply patches one after another, in place; their values become part of the document.

    The containers that paths lead to are remembered, until an operation may have moved them.
    """
    places: dict[str, tuple[Any, str]] = {}
    for patch in patches:
        for op in patch:
            path = op["path"]
            place = places.get(path)
            if place is None:
                head, slash, last = path.rpartition("/")
                parent = look(doc, split_pointer(head)) if slash and "~" not in last else None
                place = places[path] = (parent, last)
            parent, last = place
            if type(parent) is dict:
                kind = op["op"]
                old = parent.get(last, parent)
                if kind == "add" or (kind == "replace" and old is not parent):
                    parent[last] = op["value"]
                    if type(old) is dict or type(old) is list:
                        places.clear()
                    continue
            elif last == "-" and type(parent) is list and op["op"] == "add":
                parent.append(op["value"])
                continue
            places.clear()
            doc = run_operation(doc, op, None, False)
    return doc


def _patches(data: bytes, places: Iterable[tuple[int, int]]) -> list[list[dict[str, Any]]]:
    """Parse the patches of these lines, all in one go.

    A patch is followed by the observation, so its text is cut out between the two members. No proper beginning of a
    JSON array is a JSON array: where the cut was wrong, parsing fails, and the lines are parsed whole.
    """
    texts = []
    for start, end in places:
        first = data.find(b"[", start, end)
        last = data.rfind(b'],"observation":', start, end) + 1
        if not last or data[first - 9 : first] != b',"patch":':
            break
        texts.append(data[first:last])
    else:
        try:
            patches: list[list[dict[str, Any]]] = orjson.loads(b"[" + b",".join(texts) + b"]")
            return patches
        except orjson.JSONDecodeError:
            pass
    return [orjson.loads(data[start:end]).get("patch") or [] for start, end in places]


def _corrupt(lines: Lines, start: int, stop: int, reason: str) -> TraceError:
    """Find the bad line: in the chain, else the first from `start`, a snapshot's place, that can't be folded."""
    lines.check_chain()
    doc: Any = None
    number = first = lines.number(start)
    for number in range(first, lines.number(stop)):
        record = lines.record(number - 1)
        try:
            doc = record["state"] if number == first else run_patch(doc, record.get("patch") or [])
        except (PatchError, KeyError, TypeError):
            break
    return TraceCorruptError(reason, number, path=lines.path)
