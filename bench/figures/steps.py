"""Time: a step over the lower bound, late steps over early ones."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from refold.traces import Record

from ..figure import Figure, Sizes, paired, spread, trace_file
from ..workloads.limit import step_records, write_records
from ..workloads.workload import AsyncModule, SyncModule, run

WINDOW = 100


def timed(work: Callable[[Path], Any], clock: Callable[[], float] = perf_counter) -> float:
    """Return the seconds of `work`, in a new folder, after garbage collection."""
    with TemporaryDirectory(prefix="refold-bench-") as name:
        gc.collect()
        began = clock()
        kept = work(Path(name))
        taken = clock() - began
        del kept
    return taken


def step_times(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time of a step over the lower bound: medians."""
    n = sizes.steps
    with TemporaryDirectory(prefix="refold-bench-") as name:
        run(AsyncModule(), n, Path(name))
        docs = step_records(trace_file(Path(name)))
    limit, on_loop, in_threads = list[float](), list[float](), list[float]()
    for _ in range(sizes.repeats):
        limit.append(timed(lambda folder: write_records(docs, folder / "limit.jsonl")))
        on_loop.append(timed(lambda folder: run(AsyncModule(), n, folder)))
        in_threads.append(timed(lambda folder: run(SyncModule(), n, folder)))
    for key, title, times, goal in (
        ("step.async", "async module and tool", on_loop, 8.0),
        ("step.sync", "sync module and tool, in threads", in_threads, 15.0),
    ):
        details = {
            "steps": n,
            "step_us": spread(times, 1e6 / n),
            "limit_us": spread(limit, 1e6 / n),
            "ratios": spread(paired(times, limit)),
        }
        title = f"time for a step over the limit's, N = {n:,}: {title}"
        yield Figure(key, title, median(paired(times, limit)), goal, details=details)


def growth(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time of the last steps over the first: medians."""
    for key, n, goal in (("growth.short", sizes.steps, 1.3), ("growth.long", sizes.long, 2.2)):
        first, last = list[float](), list[float]()
        window = min(WINDOW, n // 2)
        for _ in range(sizes.repeats):
            times = commit_times(n)
            first.append(times[window] - times[0])
            last.append(times[-1] - times[-1 - window])
        details = {"steps": n, "first_us": spread(first, 1e6 / window), "last_us": spread(last, 1e6 / window)}
        title = f"time of the last {window} steps over the first {window}, N = {n:,}"
        yield Figure(key, title, median(last) / median(first), goal, details=details)


def commit_times(steps: int) -> list[float]:
    """Return the first step's start, and the time of each commit."""
    times = list[float]()

    def on_record(record: Record) -> None:
        if record.kind == "commit" or not times:
            times.append(perf_counter())
        elif record.kind == "snapshot" and record.step == 0:
            times[0] = perf_counter()

    timed(lambda folder: run(AsyncModule(), steps, folder, observers=[on_record]))
    return times
