"""Where the other runs of a family are on the disk: which folders hold the children, and where a run is looked for."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import TraceError, TraceNotFoundError
from ..file.opening import open_file
from ..file.record import Record
from ..file.store import SUFFIX, MemoryFamily, trace_name

BRANCHES = ".branches"
_NAMED = 3
"""How many folders an error names."""


def branches_folder(path: Path) -> Path:
    """Give the folder for the traces of a run's children, theirs, and so on: one a family.

    For `DIR/ROOT.trace.jsonl` it is `DIR/ROOT.branches`; a trace that stands in such a folder has its children there.
    """
    return path.parent if path.parent.name.endswith(BRANCHES) else path.with_name(trace_name(path) + BRANCHES)


def places_of(path: Path, run_id: str) -> Iterator[Path]:
    """Give the files that may be the trace of a relative of the run whose trace is at `path`, the likeliest first.

    It may stand in the same folder, in the folder of the branches, in the one above that, or, where one of them was
    forked from another's branch, in the branches of a neighbour. A root whose file was renamed along with the folder
    of its branches is called as that is.
    """
    name, home = run_id + SUFFIX, path.parent
    if home.name.endswith(BRANCHES):
        yield home / name
        yield home.parent / name
        yield home.parent / (home.name.removesuffix(BRANCHES) + SUFFIX)
        home = home.parent
    else:
        yield home / name
        yield branches_folder(path) / name
    for folder in sorted(home.glob(f"*{BRANCHES}")):
        if folder not in (path.parent, branches_folder(path)):
            yield folder / name


def find_relative(path: Path, run_id: str) -> Path:
    """Find the trace of a relative of the run whose trace is at `path`.

    Raises `TraceNotFoundError`, which says where it was looked for.
    """
    looked = []
    for place in places_of(path, run_id):
        looked.append(place)
        if os.path.lexists(place) and (trace_name(place) == run_id or (_header(place) or {}).get("run_id") == run_id):
            return place
    folders = list(dict.fromkeys(str(place.parent) for place in looked))
    named = ", ".join(folders[:_NAMED])
    others = f" and {len(folders) - _NAMED} other folders of branches" if len(folders) > _NAMED else ""
    raise TraceNotFoundError(f"there is no {looked[0].name} in {named}{others}", looked[0])


def headers_in(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the header of each trace of a folder by the run id that its file shows; what can't be read is left out."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = _header(path)
        if header is not None:
            yield trace_name(path), header


def _header(path: Path) -> Mapping[str, Any] | None:
    try:
        with open(open_file(path), "rb") as file:
            return _parsed(file.readline())
    except (OSError, TraceError):
        return None


def _parsed(line: bytes) -> Mapping[str, Any] | None:
    try:
        header = Record.parse(line.removesuffix(b"\n"))
        return header.data if header.kind == "header" else None
    except TraceError:
        return None


def headers_among(family: MemoryFamily) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give the header of each in-memory trace of a family by its run id."""
    for run_id, store in list(family.stores.items()):
        header = _parsed(store.read().partition(b"\n")[0])
        if header is not None:
            yield run_id, header
