"""What an exported file holds of runs: JSON lines, each of which `client/local.js` reads.

    {"kind": "runs"}     the list of the runs inside, their families, and what was compared
    {"kind": "run"}      a run: what `run` answers, its first state, and the patch of its end
    {"kind": "step"}     one step of it: its row, what `step`, `changes` and `chat` answer, and its patch
    {"kind": "values"}   long texts of the run, by their place

The answers are the server's own. Only states, histories and searches are computed on the page, from the patches.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from ..traces import Trace
from ..traces.file.store import SUFFIX
from ..traces.index.database import Database
from ..traces.index.folder import Folder
from ..traces.index.indexed import IndexedTrace
from .pages import changes, chat, compare, family, run, runs, step, values
from .pages.nodes import Json

_COLUMNS = 700
_LONGEST = 1 << 24
"""Units of one text that are put into the file; the rest of a longer one stays in the trace."""
_EXACT = 2**53


def pack(paths: Sequence[Path], *, with_family: bool = False, comparison: bool = False) -> Iterator[bytes]:
    """Yield the lines for these traces; the first one is the page that is opened.

    `with_family` adds the family of each trace, as far as its traces are found. `comparison` compares the first two.
    """
    files = _with_families(paths) if with_family else list(dict.fromkeys(path.absolute() for path in paths))
    root = Path(files[0]).parent
    folder = Folder(root, files, Database(None))
    try:
        folder.scan()
        families = runs.families_of(folder)
        places = {name: folder.path(name).absolute() for name in folder.rows}
        given = [path.absolute() for path in paths]
        opened = sorted((name for name in places if places[name] in given), key=lambda name: given.index(places[name]))
        # a called run belongs to the call that made it, and comes along; candidates and forks are many, and do not
        called = [name for name in families.rows if _is_called(families, name)]
        names = list(dict.fromkeys([*opened, *(n for n in places if places[n] in files or n in called)]))
        roots = dict.fromkeys(families.root(name) for name in names)
        folder.complete(names)  # errors and shapes of large traces, which are counted later where a folder is served
        first: Json = {
            "kind": "runs",
            "rows": [families.run_row(name) for name in names],
            "families": [family.family(folder, root) for root in roots],
            "compared": [],
            "open": opened,
        }
        if comparison and len(opened) > 1:
            first["compared"] = [compare.compare(folder, opened[0], opened[1], _COLUMNS)]
        yield _line(first)
        for name in names:
            yield from _run(folder, families, name)
    finally:
        folder.close()


def _is_called(families: runs.Families, name: str) -> bool:
    link = families.rows[name].parent
    return link is not None and link[0] == "call"


def _with_families(paths: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in paths:
        found[path.absolute()] = None
        for each in sorted(path.with_name(path.name.removesuffix(SUFFIX) + ".branches").glob(f"*{SUFFIX}")):
            found[each.absolute()] = None
        trace = Trace.load(path)
        if trace.parent is not None:
            source = path.with_name(f"{trace.parent['run']}{SUFFIX}")
            if source.exists():
                found[source.absolute()] = None
    return list(found)


def _run(folder: Folder, families: runs.Families, name: str) -> Iterator[bytes]:
    trace = folder.open(name)
    begun = bool(trace.query("SELECT 1 FROM snapshots WHERE trace = ? LIMIT 1"))
    yield _line(
        {
            "kind": "run",
            "run": run.run(trace, families.run_row(name), actions_allowed=False),
            "root": families.root(name),
            "first": trace.document(0)[0] if begun else None,
            "end": trace.end.get("patch") or [],
            "beginning": _turns(folder, trace, 0, 0),
        }
    )
    total = trace.count + (trace.open_facts() is not None)
    long = _Long()
    for k in range(total):
        committed = k < trace.count
        made = step.step(folder, trace, k)
        line = {
            "kind": "step",
            "row": run.steps(trace, k, k + 1)[0],
            "mode": trace.one(k).mode,
            "step": made,
            "changes": changes.changes(trace, k) if committed else None,
            "turns": _turns(folder, trace, k, k + 1),
            "patch": trace.patch(k) if committed else [],
        }
        long.see(line)
        yield _line(line)
    yield _line({"kind": "values", "values": long.values(trace)})


def _turns(folder: Folder, trace: IndexedTrace, first: int, stop: int) -> list[Any]:
    found: list[Any] = chat.chat(folder, trace, first, stop)["turns"]
    return [turn for turn in found if turn["k"] >= 0] if stop > first else found


class _Long:
    """The places of texts that the lines hold in part."""

    def __init__(self) -> None:
        self.places: dict[str, None] = {}

    def see(self, value: Any) -> None:
        """Note the places in a line."""
        stack = [value]
        while stack:
            each = stack.pop()
            if isinstance(each, list):
                stack += each
            elif isinstance(each, dict):
                if each.get("kind") == "text" and isinstance(each.get("at"), str):
                    self.places[each["at"]] = None
                stack += each.values()

    def values(self, trace: IndexedTrace) -> Json:
        """Return the texts that are not in a state: those of states are in its patches."""
        return {at: values.value(trace, at, 0, _LONGEST)["text"] for at in self.places if not at.startswith("s:")}


def _line(document: Json) -> bytes:
    return orjson.dumps(_safe(document), option=orjson.OPT_NON_STR_KEYS) + b"\n"


def _safe(value: Any) -> Any:
    """Return a value in which each integer that JavaScript cannot hold is written as `{"$integer": text}`.

    An object of this form that the data have is written as `{"$object": [name, value]}`; likewise one of that form.
    """
    if type(value) is int and abs(value) > _EXACT:
        return {"$integer": str(value)}
    if isinstance(value, dict):
        if len(value) == 1 and (name := next(iter(value))) in ("$integer", "$object"):
            return {"$object": [name, _safe(value[name])]}
        return {name: _safe(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(each) for each in value]
    return value
