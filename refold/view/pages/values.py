"""Values of the state and of records, in pieces; and the history of a path.

`at` says where a value is: `s:<k>:<pointer>` in state k (-1: the last one with the changes of the end),
`r:<k>:<seq>:<pointer>` in a record of step k, `end:<pointer>` in the end record. A pointer leads on into a blob.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from ...errors import PatchError
from ...traces.analysis.blame import Walk, is_missing
from ...traces.index.indexed import IndexedTrace
from ...traces.index.walk import patching_step
from ...traces.index.writers import writers_at
from ...traces.json_patch.apply import join_pointer, look, split_pointer
from .candidates import candidates
from .nodes import MEMBERS, Json, Nodes, cut_text
from .problems import ProblemError, wrong

_LENGTH = 1 << 20
"""The longest piece of a text in one answer, in UTF-16 units."""
_PAGE = 100
_STEPS = 10_000
_SHORT = 200
_CHANGED = (b'{"kind":"commit",', b'{"kind":"resume",', b'{"kind":"end",')


def state(trace: IndexedTrace, k: int, path: str, offset: int, limit: int) -> Json:
    """Return the value at a path of state k."""
    tokens = _tokens(path)
    with trace.lock:
        document, writers = _document(trace, k)
        value = _looked(document, tokens, path)
        return Nodes().node(
            value,
            f"s:{k}:{path}",
            writers=writers_at(writers, tokens),
            offset=max(0, offset),
            limit=max(1, min(limit, MEMBERS)),
            key=tokens[-1] if tokens else None,
        )


def _document(trace: IndexedTrace, k: int) -> tuple[Any, Any]:
    return trace.document(trace.count, end=True) if k == -1 else trace.document(k)


def value(trace: IndexedTrace, at: str, offset: int, length: int) -> Json:
    """Return a piece of a text, or of another value's JSON."""
    found = _found(trace, at)
    text = found if isinstance(found, str) else orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()
    piece, size = cut_text(text, max(1, min(length, _LENGTH)), max(0, offset))
    return {"text": piece, "size": size}


def _found(trace: IndexedTrace, at: str) -> Any:
    kind, _, rest = at.partition(":")
    if kind == "s":
        k, _, path = rest.partition(":")
        with trace.lock:
            document, _ = _document(trace, _number(k, at))
            return _looked(document, _tokens(path), path)
    if kind == "end":
        record: Any = trace.ending().record or {}
        return _looked(record, _tokens(rest), rest)
    if kind == "r":
        k, _, rest = rest.partition(":")
        seq, _, path = rest.partition(":")
        number, wanted = _number(k, at), _number(seq, at)
        found = next((each for each in trace.records(number) if each.seq == wanted), None)
        if found is None:
            raise wrong(f"step {k} has no record {seq}")
        value: Any = found.data
        for token in _tokens(path):
            value = trace.value(_looked(value, [token], path))
        return trace.value(value)
    raise wrong(f"{at!r} is no place of a value")


def _number(text: str, at: str) -> int:
    if len(text) > 16 or not text.removeprefix("-").isdecimal():
        raise wrong(f"{at!r} is no place of a value")
    return int(text)


def _tokens(path: str) -> list[str]:
    try:
        return split_pointer(path)
    except PatchError as error:
        raise wrong(f"{path!r} is no JSON Pointer: {error.reason}") from None


def _looked(document: Any, tokens: list[str], path: str) -> Any:
    try:
        return look(document, tokens)
    except PatchError:
        raise ProblemError(404, "no_value", f"there is nothing at {path}") from None


def history(trace: IndexedTrace, path: str, offset: int) -> Json:
    """Return the changes of the value at a path; `*` in it stands for any one member.

    Only the changes of the path's first member are folded, so that the rest of a large state costs nothing.
    """
    tokens = _tokens(path)
    steps: list[int] = []
    entries: list[Json] = []
    total = 0
    for step, _, old, new in _changes(trace, tokens):
        if (not steps or steps[-1] != step) and len(steps) < _STEPS:
            steps.append(step)
        if offset <= total < offset + _PAGE:
            nodes = Nodes(text=_SHORT, most=20)
            entries.append(
                {
                    "k": step,
                    "old": None if is_missing(old) else nodes.node(old),
                    "new": None if is_missing(new) else Nodes(text=_SHORT, most=20).node(new),
                }
            )
        total += 1
    return {"path": path, "entries": entries, "steps": steps, "total": total}


def _changes(trace: IndexedTrace, tokens: list[str]) -> Iterator[tuple[int, str, Any, Any]]:
    first = tokens[0] if tokens and tokens[0] not in ("*", "**") else None
    with trace.lock:
        stop = trace.walk.offset
        rows = trace.query("SELECT stop, k FROM snapshots WHERE trace = ? ORDER BY offset LIMIT 1")
        if not rows:
            return
        begun, commits = rows[0]
        document, _ = trace.folded(begun, commits)
    walk = Walk(tokens)
    walk.doc = document if first is None else {name: each for name, each in document.items() if name == first}
    named = _named(tokens)
    needles = _needles(named)
    for line in _lines_with(trace, begun, stop, needles):
        if not line.startswith(_CHANGED):
            continue
        record = trace.record(line)
        patch = record.get("patch") or []
        if first is not None:
            patch = [_only(op, first) for op in patch if _touches(op["path"], named)]
        for place, old, new in walk.apply(patch):
            yield patching_step(record, record.step), join_pointer(place), old, new


def _named(tokens: list[str]) -> list[str]:
    """Return the first members of a path: up to an index, which may be another one by then, or a star."""
    named = []
    for token in tokens:
        if token in ("*", "**", "-") or token.isdecimal():
            break
        named.append(token)
    return named


def _needles(named: list[str]) -> list[bytes] | None:
    """Return bytes of which each line has at least one that has an operation above or below a path; None for all."""
    if not named:
        return None
    paths = [orjson.dumps(join_pointer(named[: depth + 1]))[1:-1] for depth in range(len(named))]
    above = [b'"path":"%b"' % path for path in (b"", *paths[:-1])]
    return [*above, b'"path":"%b' % paths[-1], b"\\u", b"\\/"]  # a stranger may have written the path with escapes


def _lines_with(trace: IndexedTrace, start: int, stop: int, needles: list[bytes] | None) -> Iterator[bytes]:
    """Yield the lines of a range that have one of the needles."""
    if needles is None:
        yield from (line for _, line in trace.file.lines(start, stop))
        return
    for block in trace.file.blocks(start, stop):
        for first, last in candidates(block[1], needles):
            yield block[1][first:last]


def _touches(path: str, named: list[str]) -> bool:
    """Return whether an operation is above or below a path: lines with others are not read, so these are left out."""
    return all(mine == wanted for mine, wanted in zip(split_pointer(path), named, strict=False))


def _only(op: dict[str, Any], first: str) -> dict[str, Any]:
    """Return an operation, of which only one member of the root is left."""
    if op["path"]:
        return op
    return {**op, "value": {name: each for name, each in op["value"].items() if name == first}}
