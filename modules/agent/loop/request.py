"""A turn's request: the state and its differences."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ....traces.errors import UsageError
from ..chat.messages import Message
from ..generators.params import GenerateParams, settings_of
from .per_turn import PerTurn
from .setup import Setup
from .state import AgentState


@dataclass(slots=True)
class TurnRequest:
    """The parts of a turn's request that differ from the state.

    `system` is the system message, and `settings` are the parameters that differ from those of the state. `offered` are
    the names of the tools that the model sees; None means all.
    """

    system: Message | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    offered: list[str] | None = None

    def differences(self) -> dict[str, Any]:
        """Return the members that the request adds to its intent."""
        offered = {} if self.offered is None else {"offered": self.offered}
        return {**offered, **({"settings": self.settings} if self.settings else {})}

    def params(self, state: AgentState) -> GenerateParams:
        """Return the parameters of the request."""
        return state.params.with_settings(self.settings).offering(self.offered)

    def changed_system(self, state: AgentState) -> str | None:
        """Return new instructions, "" to remove them, or None."""
        if self.system is state.system:
            return None
        return "" if self.system is None else self.system.content


async def request_of(setup: Setup, state: AgentState) -> TurnRequest:
    """Return what a turn asks the model, from the Agent's settings."""
    found = TurnRequest(state.system, offered=setup.offered_names(state))
    run = partial(setup.run_context, state)
    if isinstance(setup.instructions, PerTurn):
        found.system = _system(setup, await setup.instructions.value(state, run), state.system)
    if isinstance(setup.settings, PerTurn):
        settings = settings_of(await setup.settings.value(state, run), f"settings of the agent {setup.name!r}")
        found.settings = state.params.differing(settings)
    return found


def _system(setup: Setup, text: Any, current: Message | None) -> Message | None:
    """Return the system message; an equal one is the state's."""
    if text is not None and not isinstance(text, str):
        raise UsageError(f"instructions= of the agent {setup.name!r} must return text, got {text!r:.80}.")
    if current is not None and current.body == text:
        return current
    return Message("system", text) if text else None
