"""Forking: a run that starts with a late state, over reading it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from refold import Engine, RuntimeBudget, Trace

from ..figure import Figure, Sizes, paired, spread, trace_file
from ..workloads.workload import AsyncModule, WorkState, run
from .load import seconds


def forks(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time of a late fork over that of loading its state."""
    at = sizes.steps * 19 // 20
    edits: dict[str, Any] = {"plain": None, "values": {"/notes/last/k3": -1}, "function": _count_anew}
    with TemporaryDirectory(prefix="refold-bench-") as name:
        run(AsyncModule(), sizes.steps, Path(name))
        path = trace_file(Path(name))
        works: dict[str, Callable[[Path], Any]] = {"read": partial(_read, at)}
        works |= {key: partial(_fork, at, edit, Path(name) / "forks") for key, edit in edits.items()}
        times: dict[str, list[float]] = {key: [] for key in works}
        for _ in range(3 * sizes.repeats):
            for key, work in works.items():
                times[key].append(seconds(work, path))
    for key, edited in (("plain", ""), ("values", ", a value set"), ("function", ", a draft changed")):
        details = {"fork_ms": spread(times[key], 1e3), "read_ms": spread(times["read"], 1e3)}
        title = f"fork at step {at:,} of {sizes.steps:,}{edited}, over reading state {at:,}"
        yield Figure(f"fork.{key}", title, median(paired(times[key], times["read"])), 2.0, details=details)


def _read(at: int, path: Path) -> WorkState:
    return Trace.load(path).state(at, WorkState)


def _fork(at: int, edit: Any, folder: Path, path: Path) -> Any:
    result = Engine(AsyncModule(), traces=folder).fork(path, at, edit, budget=RuntimeBudget(max_steps=at))
    assert (result.steps, result.error, len(result.state.messages)) == (0, None, 2 * at)
    return result


def _count_anew(draft: WorkState) -> None:
    draft.count = 0
