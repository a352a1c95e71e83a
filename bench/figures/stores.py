"""A step on each store over the same step on files."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from time import sleep
from typing import Any

from refold.errors import StoreError
from refold.traces.stores import TraceStore, open_store

from ..figure import Figure, Sizes, paired, spread
from ..workloads.workload import AsyncModule, run
from .steps import timed


def stores(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time of a step in databases over files: medians."""
    n = sizes.steps // 4
    with postgres() as url:
        kinds = {"sqlite": ("SQLite", 2.0), **({"postgres": ("PostgreSQL on a socket", 6.0)} if url else {})}
        files, others = list[float](), {kind: list[float]() for kind in kinds}
        schemas = count()
        for _ in range(sizes.repeats):
            files.append(timed(lambda folder: steps(open_store(folder), n)))
            others["sqlite"].append(timed(lambda folder: steps(open_store(f"sqlite:///{folder}/runs.db"), n)))
            if url:
                store = open_store(f"{url}&schema=bench{next(schemas)}")
                others["postgres"].append(timed(partial(_steps_in, store, n)))
    for kind, (title, goal) in kinds.items():
        times = others[kind]
        details = {
            "steps": n,
            "step_us": spread(times, 1e6 / n),
            "files_us": spread(files, 1e6 / n),
            "ratios": spread(paired(times, files)),
        }
        title = f"time for a step on {title} over a step on files, N = {n:,}"
        yield Figure(f"store.{kind}", title, median(paired(times, files)), goal, details=details)


def steps(store: TraceStore, n: int) -> Any:
    """Run the workload of the other figures in a store; close it."""
    try:
        return run(AsyncModule(), n, store)
    finally:
        store.close()


def _steps_in(store: TraceStore, n: int, _: Path) -> Any:
    return steps(store, n)


@contextmanager
def postgres() -> Iterator[str | None]:
    """Start Debian's PostgreSQL on a socket; yield its URL, or None.

    It has its default durability.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        yield None
        return
    home, programs = Path(mkdtemp(prefix="refold-pg-")), found[-1].parent
    user: dict[str, Any] = {"cwd": "/"}
    if os.getuid() == 0:
        shutil.chown(home, "postgres")
        user |= {"user": "postgres", "group": "postgres", "extra_groups": []}
    made = [
        str(programs / "initdb"),
        "-D",
        f"{home}/d",
        "-N",
        "-A",
        "trust",
        "-U",
        "refold",
        "--no-locale",
        "-E",
        "UTF8",
    ]
    subprocess.run(made, check=True, capture_output=True, **user)
    options = ["-D", f"{home}/d", "-k", str(home), "-c", "listen_addresses="]
    server = subprocess.Popen([str(programs / "postgres"), *options], stderr=subprocess.DEVNULL, **user)
    try:
        url = f"postgresql:///postgres?host={home}&user=refold"
        while True:
            try:
                open_store(url).close()
                break
            except StoreError:
                if server.poll() is not None:
                    raise
                sleep(0.1)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()
        shutil.rmtree(home, ignore_errors=True)
