"""Memory: the most that a long run holds, over what its last state holds.

What a run holds is what Python's allocators have given out since it began, by tracemalloc: exact, and the same on
every machine; what C libraries keep for themselves is not in it. (The resident size is not used: it moves by pages,
keeps what was freed, and counts what the run did not ask for.) A state's own size is `sys.getsizeof` over every object
that is reached from it, each counted once, without classes. Both are in bytes.
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
    """The peak of a run over its last state's own size; tracing slows it down, so it is done once."""
    n = sizes.long
    with TemporaryDirectory(prefix="refold-bench-") as name:
        run(AsyncModule(), 10, Path(name))  # whatever is made on first use is there
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
    """The bytes of a value and of all that it holds, each object once."""
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
