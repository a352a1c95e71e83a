"""Resolves the branches of one live run with its engine's strategy."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...tasks import Environment
from ..effects.budget import EndedFromAbove
from ..loop.decision import Decision
from ..loop.loop import Adopted
from ..run.runner import Runner
from ..state.model import StateSchema
from .background import taken_up
from .environments import Worlds
from .exploration import Exploration, adopted

if TYPE_CHECKING:
    from ..engine import Engine


class Explorer:
    """The resolver of one live run's branches; it registers itself with the runner."""

    def __init__(self, engine: "Engine", runner: Runner, environment: Environment | None) -> None:
        self.engine = engine
        self.runner = runner
        self.environment = environment
        self.exploration: Exploration | None = None
        runner.choose, runner.adopt, runner.asks_at_once = self.choose, self.adopt_recorded, engine.max_children
        runner.take_up = taken_up

    async def choose(self, state: StateSchema, decision: Decision, nest: int, again: bool) -> int | Adopted:
        """Resolve one branch: return the chosen candidate's number, or the state to adopt.

        `nest` counts the branches that this step has resolved before. `again` says that an earlier attempt has started
        the step, so that children may exist already.
        """
        async with Worlds(self.environment, shared=self.engine.shared_env) as worlds:
            self.exploration = Exploration(self, state, decision, nest, again, worlds)
            try:
                return await self.exploration.decide(self.engine.branch)
            finally:
                self.exploration = None

    def stop(self, why: EndedFromAbove) -> None:
        """End the run and the child runs that it explores, for the budget of its parent."""
        if self.exploration is not None:
            self.exploration.children.stop(why)
        self.runner.run.stop(why)

    async def adopt_recorded(self, chosen: Mapping[str, Any]) -> Adopted:
        """Return the state that an earlier attempt has chosen but not committed."""
        trace = self.runner.run.writer.trace().relative(chosen["run"])
        return adopted(self.engine.module.state_class.from_dict(trace.state(-1)), chosen["stop_reason"])
