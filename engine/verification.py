"""Verifies a trace by its module, without an engine's options."""

from pathlib import Path
from typing import Any

from ..traces import Trace
from .engine import Engine
from .module import MakesModule, Module
from .replay.divergence import Divergence


def verify(module: Module[Any] | MakesModule[Any], trace: Trace | Path | str) -> list[Divergence]:
    """Run a trace's hooks with its outcomes, and return the divergences.

    An empty list says that the module does what its trace recorded. `trace` is a Trace or the path of its file; for a
    run's id there is `Engine(module, traces=...).verify(run_id)`. Nothing but `init_state`, `decide` and `reduce` runs:
    no effect, no tool, no `act`.

    Raises:
        EngineUsageError: inside a running event loop; use `await averify(module, trace)` there.
        TraceNotFoundError, TraceCorruptError: there is no such trace, or its file is corrupt.
    """
    return Engine(module).verify(trace)


async def averify(module: Module[Any] | MakesModule[Any], trace: Trace | Path | str) -> list[Divergence]:
    """As `verify`, inside an event loop."""
    return await Engine(module).averify(trace)
