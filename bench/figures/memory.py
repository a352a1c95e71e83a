"""Memory: the peak of a long run, over its last state.

The peak counts what Python's allocators have given out since the run started, by tracemalloc: this is exact, and the
same on every machine. Memory that C libraries allocate themselves does not count. (The resident size is not used: it
changes by pages, keeps freed memory, and counts memory that the run did not request.) A state's own size is the sum of
`sys.getsizeof` over all objects reached from it, each counted once, without classes. Both are in bytes.
"""

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel

from ..figure import Figure, Sizes
from ..workloads.workload import AsyncModule, run


def memory(sizes: Sizes) -> Iterator[Figure]:
    """Yield a run's peak over its last state, measured once: tracing is slow."""
    n = sizes.long
    with TemporaryDirectory(prefix="refold-bench-") as name:
        run(AsyncModule(), 10, Path(name))  # so that everything made on first use exists
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            result = run(AsyncModule(), n, Path(name))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    own = own_size(result.state)
    details = {"steps": n, "peak_mb": round((peak - before) / 1e6, 1), "state_mb": round(own / 1e6, 1)}
    title = f"peak memory over the final state's own size, N = {n:,}"
    yield Figure("memory", title, (peak - before) / own, 4.0, details=details)


def own_size(value: Any) -> int:
    """Return the bytes of a value's objects, each counted once."""
    seen, left, size = set[int](), [value], 0
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)
        if isinstance(each, dict):
            left += each.keys()
            left += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            left += each
        elif isinstance(each, BaseModel):
            left.append(each.__dict__)
            left.append(each.__pydantic_fields_set__)
    return size
