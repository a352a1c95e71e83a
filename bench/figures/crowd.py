"""Many runs at once in one process, over bare awaits."""

import asyncio
import contextlib
import gc
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from refold import Engine

from ..figure import Figure, Sizes, paired, spread, trace_file
from ..workloads.limit import chained, records
from ..workloads.workload import SlowModule, engine, run


def crowd(sizes: Sizes) -> Iterator[Figure]:
    """Yield the rate of runs with 5 ms waits, over bare awaits."""
    runs, steps = sizes.runs, sizes.run_steps
    allow_files(runs + 100)
    with TemporaryDirectory(prefix="refold-bench-") as name:
        run(SlowModule(), steps, Path(name))
        docs = records(trace_file(Path(name)))
    bare, engines = list[float](), list[float]()
    for _ in range(max(2, sizes.repeats // 2)):
        bare.append(together(lambda folder, i: bare_run(docs, folder / f"{i}.jsonl"), runs))
        engines.append(together_on_one_engine(steps, runs))
    details = {
        "runs": runs,
        "steps": steps,
        "bare_s": spread(bare),
        "engine_s": spread(engines),
        "steps_per_second": round(runs * steps / min(engines)),
        "shares": spread(paired(bare, engines), 100),
    }
    title = f"{runs:,} runs of {steps} steps at once, 5 ms each: share of the bare rate"
    yield Figure("crowd", title, 100 * median(paired(bare, engines)), 40.0, "above", "%", details)


def together_on_one_engine(steps: int, runs: int) -> float:
    """Return the seconds until all runs of one engine have ended."""
    engines: dict[Path, Engine] = {}

    async def engine_run(folder: Path, _: int) -> None:
        if folder not in engines:
            engines[folder] = engine(SlowModule(), steps, folder)
        result = await engines[folder].arun("work")
        assert result.steps == steps, result.error

    return together(engine_run, runs)


async def bare_run(docs: list[dict[str, Any]], path: Path) -> None:
    """Wait as long, and write the same records."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    previous = b""
    for doc in docs:
        if doc["kind"] == "outcome":
            await asyncio.sleep(0.005)
        line, previous = chained(doc, previous)
        os.write(fd, line)
    os.close(fd)


def together(work: Callable[[Path, int], Awaitable[None]], runs: int) -> float:
    """Return the seconds until `runs` jobs have ended, in one loop."""

    async def main(folder: Path) -> float:
        gc.collect()
        began = perf_counter()
        await asyncio.gather(*[work(folder, i) for i in range(runs)])
        return perf_counter() - began

    with TemporaryDirectory(prefix="refold-bench-") as name:
        return asyncio.run(main(Path(name)))


def allow_files(count: int) -> None:
    """Let this process open this many files, if the system allows it."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
