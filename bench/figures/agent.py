"""The Agent: time of a step, growth over a run, bytes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import orjson

from refold import Trace
from refold.traces import Record

from ..figure import Figure, Sizes, paired, spread, trace_file
from ..workloads.agent_work import RESULT, TEXT, messages_weight, run_agent, run_bare, script
from ..workloads.limit import records
from .steps import WINDOW, timed

PEER = (("agent.peer.short", 100, 4, 1 / 20), ("agent.peer.long", 500, 1, 1 / 100))
"""Figures compared with dreadnode: steps of a run, number of runs (the long one takes a minute), and goal."""


def agent(sizes: Sizes) -> Iterator[Figure]:
    """Yield the Agent's figures, those beside dreadnode only with `sizes.peer`."""
    yield from _steps(sizes)
    yield _growth(sizes)
    yield from _bytes(sizes)
    if sizes.peer is not None:
        for key, steps, runs, goal in PEER:
            yield _beside_peer(key, min(steps, sizes.steps), runs, goal, sizes)


def _steps(sizes: Sizes) -> Iterator[Figure]:
    """Yield an Agent's time, trajectory included, over the bare engine's: medians."""
    n = sizes.steps
    script(n)
    for key, kind, in_threads in (("agent.step.async", "async", False), ("agent.step.sync", "sync", True)):
        whole, bare = list[float](), list[float]()
        for _ in range(sizes.repeats):
            bare.append(timed(partial(run_bare, n, in_threads=in_threads)))
            whole.append(timed(partial(run_agent, n, in_threads=in_threads)))
        ratios = paired(whole, bare)
        details = {
            "steps": n,
            "step_us": spread(whole, 1e6 / n),
            "bare_us": spread(bare, 1e6 / n),
            "ratios": spread(ratios),
        }
        title = f"time for a step of an Agent over the bare engine's, N = {n:,}: {kind} tool"
        yield Figure(key, title, median(ratios), 4.0, details=details)


def _growth(sizes: Sizes) -> Figure:
    """Return the time of an Agent's last steps over its first: medians."""
    n = sizes.steps
    first, last = list[float](), list[float]()
    window = min(WINDOW, n // 2)
    for _ in range(sizes.repeats):
        times = _commit_times(n)
        first.append(times[window] - times[0])
        last.append(times[-1] - times[-1 - window])
    details = {"steps": n, "first_us": spread(first, 1e6 / window), "last_us": spread(last, 1e6 / window)}
    title = f"time of an Agent's last {window} steps over its first {window}, N = {n:,}"
    return Figure("agent.growth", title, median(paired(last, first)), 1.5, details=details)


def _commit_times(steps: int) -> list[float]:
    times = list[float]()

    def on_record(record: Record) -> None:
        if record.kind == "commit" or (record.kind == "snapshot" and not times):
            times.append(perf_counter())

    timed(lambda folder: run_agent(steps, folder, observers=[on_record]))
    return times


def _bytes(sizes: Sizes) -> Iterator[Figure]:
    """Yield the bytes of an Agent's trace over its messages as sent."""
    for key, what, closely in (("agent.bytes", "100 bytes", False), ("agent.bytes.long", "2,000 bytes", True)):
        with TemporaryDirectory(prefix="refold-bench-") as name:
            folder = Path(name)
            run_agent(sizes.steps, folder, closely=closely)
            path = trace_file(folder)
            whole = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            messages = messages_weight(Trace.load(path))
            by_kind: dict[str, int] = {}
            for record in records(path):
                by_kind[record["kind"]] = by_kind.get(record["kind"], 0) + len(orjson.dumps(record)) + 43
        details = {"steps": sizes.steps, "trace": whole, "messages": messages, "by_kind": by_kind}
        title = f"bytes of an Agent's trace over its messages', a tool that returns {what}, N = {sizes.steps:,}"
        yield Figure(key, title, whole / messages, 5.0, details=details)


def _beside_peer(key: str, steps: int, runs: int, goal: float, sizes: Sizes) -> Figure:
    """Return the time of a run over that of dreadnode's Agent: medians.

    Our runs write a trace, dreadnode's write nothing. Times are CPU seconds, because a minute on a busy machine is not
    like the next one. Our runs come before and after dreadnode's.
    """
    assert sizes.peer is not None
    script(steps)
    ours = [timed(partial(run_agent, steps), process_time) for _ in range(sizes.repeats)]
    report = _peer(sizes.peer, steps, runs)
    ours += [timed(partial(run_agent, steps), process_time) for _ in range(sizes.repeats)]
    theirs = report["seconds"]
    details = {
        "steps": steps,
        "dreadnode": report["version"],
        "step_us": spread(ours, 1e6 / steps),
        "peer_us": spread(theirs, 1e6 / steps),
    }
    title = f"CPU time for a step of an Agent over dreadnode's, N = {steps:,}"
    return Figure(key, title, median(ours) / median(theirs), goal, details=details)


def _peer(python: str, steps: int, runs: int) -> dict[str, Any]:
    """Return the times of runs in dreadnode, after a short first run."""
    script = Path(__file__).parents[1] / "workloads" / "dreadnode_loop.py"
    arguments = [python, "-I", str(script), str(steps), str(runs), TEXT, RESULT]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{python} cannot run the loop of dreadnode; is it installed there?\n{done.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report
