"""Verifies a trace by its module, without an engine's options."""

from pathlib import Path
from typing import Any

from ..traces import Trace
from .engine import Engine
from .module import MakesModule, Module
from .replay.divergence import Divergence


def verify(module: Module[Any] | MakesModule[Any], trace: Trace | Path | str) -> list[Divergence]:
    """Run a trace's hooks with its outcomes, and return the divergences.

    An empty list means that the module does what its trace recorded. `trace` is a Trace or the path of its file; for a
    run's id, use `Engine(module, traces=...).verify(run_id)`. Only `init_state`, `decide` and `reduce` run: no effect,
    no tool, no `act`.

    Raises:
        EngineUsageError: inside a running event loop; use `await averify(module, trace)` there.
        TraceNotFoundError, TraceCorruptError: there is no such trace, or its file is corrupt.
    """
    return Engine(module).verify(trace)


async def averify(module: Module[Any] | MakesModule[Any], trace: Trace | Path | str) -> list[Divergence]:
    """Verify a trace as `verify` does, inside an event loop."""
    return await Engine(module).averify(trace)
