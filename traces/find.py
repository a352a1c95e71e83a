"""Who changed what: the values at a path, compared from document to document."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .history import History
from .lines import Lines
from .patch import join_pointer, same_json, split_pointer
from .share import Op

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Blame:
    """At step `step` the value at `path` became another: `old` is None where `op` is "add", `new` where "remove".

    `kind` is that of the record which did it: the step's commit, or a resume or end before it.
    """

    step: int
    path: str
    op: Op
    old: Any
    new: Any
    kind: str = "commit"


def blame(lines: Lines, history: History, pattern: str) -> Iterator[Blame]:
    """Give each change of a value whose path matches, in order.

    In `pattern`, a JSON Pointer, `*` stands for any one member or index and a last `**` for all that is below, down to
    the smallest parts that changed. It is the values *at* the paths that are compared: removing the first of a list
    changes the value at each of its indices.
    """
    tokens = split_pointer(pattern)
    for ordinal, index in enumerate(history.patching):
        record = lines.record(index)
        if record.kind != "commit" and not record.get("patch"):
            continue
        for path, old, new in _differences(history.at(ordinal), history.at(ordinal + 1), tokens, ()):
            op: Op = "add" if old is _MISSING else "remove" if new is _MISSING else "replace"
            was, now = (None if value is _MISSING else value for value in (old, new))
            yield Blame(record.step, join_pointer(path), op, was, now, record.kind)


def _differences(
    old: Any, new: Any, tokens: list[str], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if old is new:
        return
    if not tokens:
        if old is _MISSING or new is _MISSING or not same_json(old, new):
            yield path, old, new
        return
    token, rest = tokens[0], tokens[1:]
    if token == "**":
        if rest:
            yield from _differences(old, new, rest, path)
        elif not (_is_container(old) and type(old) is type(new)):
            yield from _differences(old, new, [], path)
            return
        rest = tokens
    for name in _names(old, new) if token in ("*", "**") else [token]:
        yield from _differences(_child(old, name), _child(new, name), rest, (*path, name))


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _names(old: Any, new: Any) -> list[str]:
    names: dict[str, None] = {}
    for value in (old, new):
        if isinstance(value, dict):
            names.update(dict.fromkeys(value))
        elif isinstance(value, list):
            names.update(dict.fromkeys(map(str, range(len(value)))))
    return list(names)


def _child(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _MISSING)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return _MISSING
