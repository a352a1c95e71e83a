"""The code that carries out the actions of `refold view`, loaded as the other commands load it."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ...engine import UNANSWERED, AgentModule, Divergence, Engine
from ...traces import Record, Trace
from ...view.actions import Runner
from ..input.consent import Row, pending_rows
from .resume import runner_of

if TYPE_CHECKING:
    from ...modules.agent import Agent
    from ..agent.build import Made

Observer = Callable[[Record], None]


class _AskedError(Exception):
    """Ends the loading of a module where its user would be asked."""


class CommandModules:
    """Loads the module that the command names, otherwise the one that a trace names."""

    def __init__(self, named: str | None, trust: Sequence[Path]) -> None:
        self.named = named
        self._trust = trust

    def question(self, trace: Trace) -> str | None:
        """Return what is about to be loaded, as the command line tells it; None if the user has named it."""
        if self.named is not None:
            return None
        rows: list[Row] = []

        def before(told: Sequence[Row]) -> None:
            rows.extend(told)
            raise _AskedError

        with contextlib.suppress(_AskedError):
            runner_of(trace, None, self._trust, before=before)
        told = [f"{label}: {text}" for label, text in [*rows, *pending_rows(trace)]]
        return "\n".join(["The trace names this, and anyone can write a trace:", *told])

    def runner(self, trace: Trace, *, verifying: bool = False) -> Runner:
        """Load the code for a run."""
        found = runner_of(trace, self.named, self._trust, verifying=verifying)
        return ModuleRunner(found) if isinstance(found, AgentModule) else AgentRunner(found)


class ModuleRunner:
    """Carries out actions on the runs of a module."""

    def __init__(self, module: AgentModule[Any]) -> None:
        self._module = module

    def resume(self, path: Path, answers: Mapping[str, Any], observer: Observer) -> None:
        """Resume a run."""
        engine = Engine(self._module, observers=(observer,))
        engine.resume(path, dict(answers) if answers else UNANSWERED)

    def fork(
        self, trace: Trace, home: Path, at: int, edits: Mapping[str, Any], reuse: bool, observer: Observer
    ) -> None:
        """Fork a run."""
        engine = Engine(self._module, traces=home, observers=(observer,))
        engine.fork(trace, at, edits or None, reuse_effects=reuse)

    def verify(self, trace: Trace) -> list[Divergence]:
        """Verify a run."""
        return Engine(self._module).verify(trace)


class AgentRunner:
    """Carries out actions on the runs of an Agent."""

    def __init__(self, made: "Made") -> None:
        self._made = made

    def resume(self, path: Path, answers: Mapping[str, Any], observer: Observer) -> None:
        """Resume a run."""
        value = dict(answers) if answers else UNANSWERED
        self._do(lambda agent: agent.resume(path, value), {"observers": (observer,)})

    def fork(
        self, trace: Trace, home: Path, at: int, edits: Mapping[str, Any], reuse: bool, observer: Observer
    ) -> None:
        """Fork a run."""
        options = {"observers": (observer,), "traces": home}
        self._do(lambda agent: agent.fork(trace, at, edits or None, reuse_effects=reuse), options)

    def verify(self, trace: Trace) -> list[Divergence]:
        """Verify a run."""
        return Engine(self._made.agent.module()).verify(trace)

    def _do(self, work: "Callable[[Agent], Awaitable[Any]]", options: dict[str, Any]) -> None:
        from ..agent.session import entered

        made = self._made
        options["workspace"] = made.config.path(made.config.workspace)
        agent = made.agent.with_(engine={**(made.agent.engine or {}), **options})

        async def run() -> None:
            async with entered(agent):
                await work(agent)

        with made.scene():
            anyio.run(run)
