"""The facts of a process to which a run is tied, such as its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...traces.errors import DivergenceError
from ..effects.context import Frame
from ..replay.divergence import Divergence

if TYPE_CHECKING:
    from .live_run import LiveRun


class Pin:
    """Compares facts with those that the trace records, and records new ones.

    Of each fact, the first value in this attempt counts: later ones are a tool's own.
    """

    def __init__(self, run: LiveRun) -> None:
        self._run = run
        self._known: dict[str, object] = {}

    def __call__(self, frame: Frame, name: str, value: str) -> None:
        """Compare and record a fact; see `perform.pin`."""
        run, token = self._run, object()
        if name in self._known or run.closed or run.suspended:
            return
        value = value if run.redactor is None else run.redactor.text(value)
        earlier = run.plan.position.pinned.get(name)
        if earlier not in (None, value) and run.plan.options.on_divergence != "ignore":
            run.broken = run.diverged = DivergenceError(
                [Divergence(run.step, frame.phase, {name: earlier}, {name: value})],
                f"Run {run.run_id} worked in the {name} {earlier}, and this process has {value}. Resume the run "
                "there, or continue here with on_divergence='ignore' (--on-divergence ignore).",
            )
            run.cancel_work()
            run.refuse_broken(frame)
        if self._known.setdefault(name, token) is token and earlier != value:  # threads may come at the same time
            run.write("event", frame.step, {"name": "pinned", "data": {name: value}})
