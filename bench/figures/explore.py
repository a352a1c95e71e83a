"""Branching: many children of a large state, over runs from nothing."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from refold import Action, BestOfN, Decision, Engine, Observation, RunResult, RuntimeBudget, Task, Trace

from ..figure import Figure, Sizes, paired, spread, trace_file
from ..workloads.workload import SAID, AsyncModule, Message, WorkState, init_state, next_call, take_in
from .crowd import allow_files
from .memory import own_size
from .steps import timed

AT_ONCE = 16


class FanModule(AsyncModule):
    """Branches into `children` candidates, each a tool call; adopts the best."""

    async def init_state(self, task: str, messages: int = 0, children: int = 0) -> WorkState:
        said = [Message(role="assistant", content=f"{i:>8}: {SAID}") for i in range(messages)]
        return WorkState(messages=said, notes={**init_state().notes, "ways": {"open": children}})

    async def decide(self, state: WorkState) -> Decision:
        if state.count:
            return Decision.final("done")
        ways = state.notes["ways"]["open"]
        return Decision.branch([Decision.act(Action("look", {"place": i})) for i in range(ways)])

    def reduce(self, state: WorkState, decision: Decision, observation: Observation) -> None:
        if observation.results:
            take_in(state, observation)


class OneStep(AsyncModule):
    """One tool call on an empty state."""

    async def decide(self, state: WorkState) -> Decision:
        return next_call(state)


def explored(folder: Path, messages: int, children: int) -> RunResult:
    """Return a run that explores every candidate, with traces in `folder`."""
    strategy = BestOfN(lambda state: float(len(state.messages)), steps=1)
    engine = Engine(FanModule(), traces=folder, branch=strategy, max_children=AT_ONCE)
    result = engine.run(Task(objective="work", inputs={"messages": messages, "children": children}))
    assert result.status == "completed", result.error
    return result


def one_step_runs(folder: Path, runs: int) -> None:
    """Run `runs` runs of one step from nothing, all at once."""
    engine = Engine(OneStep(), traces=folder, budget=RuntimeBudget(max_steps=1))
    work = iter(range(runs))

    async def worker() -> None:
        for _ in work:
            result = await engine.arun("work")
            assert result.steps == 1, result.error

    async def main() -> None:
        await asyncio.gather(*[worker() for _ in range(AT_ONCE)])

    asyncio.run(main())


def explore(sizes: Sizes) -> Iterator[Figure]:
    """Yield the time and memory of children of a large state."""
    allow_files(sizes.children + 100)
    yield _time(sizes)
    yield _memory(sizes)


def _time(sizes: Sizes) -> Figure:
    n, m = sizes.children, sizes.messages
    alone, branched = list[float](), list[float]()
    for _ in range(max(2, sizes.repeats)):
        alone.append(timed(lambda folder: one_step_runs(folder, n)))
        branched.append(timed(lambda folder: explored(folder, m, n)))
    details = {
        "children": n,
        "messages": m,
        "child_us": spread(branched, 1e6 / n),
        "run_us": spread(alone, 1e6 / n),
        "ratios": spread(paired(branched, alone)),
    }
    title = f"time of {n:,} children of {m:,} messages, a step each, over {n:,} runs of a step from an empty state"
    return Figure("explore.time", title, median(paired(branched, alone)), 1.5, details=details)


def _memory(sizes: Sizes) -> Figure:
    """Return a child's memory, from the difference of many and few children."""
    n, m = sizes.children, sizes.messages
    few = max(1, n // 10)
    with TemporaryDirectory(prefix="refold-bench-") as name:
        explored(Path(name), m, few)  # so that everything made on first use exists
    peaks = {}
    for children in (few, n):
        with TemporaryDirectory(prefix="refold-bench-") as name:
            peaks[children], state, size = _peak(Path(name), m, children)
    each = (peaks[n] - peaks[few]) / (n - few)
    own = own_size(state)
    details: dict[str, Any] = {
        "children": n,
        "messages": m,
        "child_kb": round(each / 1e3, 1),
        "state_kb": round(own / 1e3, 1),
        "trace_kb": round(size / 1e3, 1),
    }
    title = f"memory of each of {n:,} children, over the state of {m:,} messages at which it starts"
    return Figure("explore.memory", title, each / own, 0.05, details=details)


def _peak(folder: Path, messages: int, children: int) -> tuple[int, Any, int]:
    """Return peak memory, the state, and a child's trace length."""
    gc.collect()
    tracemalloc.start()
    try:
        result = explored(folder, messages, children)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (below,) = folder.glob("*.branches")
    size = Trace.load(next(iter(sorted(below.glob("*.trace.jsonl"))))).size
    assert trace_file(folder)
    return peak, result.state, size
