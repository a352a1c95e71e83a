"""Find a trace by path, by run id, or as the newest."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from ...traces import list_traces
from ...traces.analysis.locate import branches_folder
from ...traces.file.store import SUFFIX
from ..errors import InputError

RUNS = Path("runs")
"""The default folder of traces."""


def find_trace(named: str, traces: Path) -> Path:
    """Return the trace file that `named` means.

    Raises InputError if there is none.
    """
    path = Path(named)
    if path.is_dir():
        return newest(path)
    if path.exists():
        return path
    run = traces / f"{named}{SUFFIX}"
    if run.exists():
        return run
    child = branches_folder(traces / f"{named.partition('~')[0]}{SUFFIX}") / run.name
    if child.exists():
        return child
    known = [each.name.removesuffix(SUFFIX) for each in traces.glob(f"*{SUFFIX}")]
    near = get_close_matches(named, known, 1, 0.8)
    hint = f"; did you mean {near[0]}?" if near else "; `refold trace ls` shows the runs there are"
    raise InputError(f"there is no trace at {named}, and no run of that id in {traces}{hint}")


def find_traces(named: Sequence[str], traces: Path, *, all: bool = False) -> list[Path]:
    """Return the trace files of several names.

    A folder means its newest trace, or with `all` every one.
    """
    found: list[Path] = []
    for each in named:
        path = Path(each)
        in_folder = sorted(path.glob(f"*{SUFFIX}")) if all and path.is_dir() else []
        found += in_folder or [newest(path) if each == str(traces) else find_trace(each, traces)]
    return found


def newest(folder: Path) -> Path:
    """Return the newest trace of a folder.

    Raises InputError if it has none.
    """
    found = [summary for summary in list_traces(folder) if summary.status != "corrupt"] if folder.is_dir() else []
    if not found:
        raise InputError(f"there are no traces in {folder}; name a trace, or the folder they are in with --traces")
    return found[-1].path
