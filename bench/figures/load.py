"""Reading: a state from a trace, over one parse of the last."""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import orjson

from refold import Trace

from ..figure import Figure, Sizes, paired, spread, trace_file
from ..workloads.workload import AsyncModule, run


def loads(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time to load a state, chain unchecked: medians of repeats."""
    for key, n in (("short", sizes.steps), ("long", sizes.long)):
        with TemporaryDirectory(prefix="refold-bench-") as name:
            run(AsyncModule(), n, Path(name))
            path = trace_file(Path(name))
            document = orjson.dumps(Trace.load(path).final_state)
            reads: dict[str, Callable[[Path], Any]] = {
                "parse": partial(_parse, document),
                "last": lambda path: Trace.load(path).final_state,
                "middle": partial(_state, n // 2),
            }
            times: dict[str, list[float]] = {name: [] for name in reads}
            for _ in range(3 * sizes.repeats):
                for what, read in reads.items():
                    times[what].append(seconds(read, path))
        base = times.pop("parse")
        for place, took in times.items():
            details = {"steps": n, "load_ms": spread(took, 1e3), "parse_ms": spread(base, 1e3)}
            title = f"load of the {place} state over one parse of the last, N = {n:,}"
            yield Figure(f"load.{place}.{key}", title, median(paired(took, base)), 3.0, details=details)


def _parse(document: bytes, path: Path) -> Any:
    return path.read_bytes(), orjson.loads(document)


def _state(step: int, path: Path) -> Any:
    return Trace.load(path).state(step)


def seconds(read: Callable[[Path], Any], path: Path) -> float:
    gc.collect()
    began = perf_counter()
    kept = read(path)
    taken = perf_counter() - began
    del kept
    return taken
