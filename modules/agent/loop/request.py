"""A turn's request: the state and its differences."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ....engine import emit
from ....traces.errors import UsageError
from ..chat.messages import Message
from ..chat.validation import sanitize_orphan_tool_messages
from ..chat.view import Shown, view_of
from ..generators.estimate import estimate_tokens
from ..generators.params import GenerateParams, settings_of
from .per_turn import PerTurn
from .setup import Setup
from .state import AgentState


@dataclass(slots=True)
class TurnRequest:
    """The parts of a turn's request that differ from the state.

    `system` is the system message, `messages` the part of the conversation that is sent and `view` its recorded form
    (None for the whole conversation), and `settings` are the parameters that differ from those of the state. `offered`
    are the names of the tools that the model sees; None means all.
    """

    system: Message | None
    messages: Sequence[Message]
    view: list[Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    offered: list[str] | None = None

    def differences(self) -> dict[str, Any]:
        """Return the members that the request adds to its intent."""
        found = {"view": self.view, "offered": self.offered, "settings": self.settings or None}
        return {name: value for name, value in found.items() if value is not None}

    def reserve(self, state: AgentState) -> int:
        """Return the approximate number of tokens that are sent."""
        own = 0 if self.system is None else estimate_tokens([self.system])
        if self.view is not None:
            return own + estimate_tokens(self.messages)
        if self.system is state.system:
            return state.weight
        return state.weight + own - (0 if state.system is None else estimate_tokens([state.system]))

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
    found = TurnRequest(state.system, state.messages, offered=setup.offered_names(state))
    run = partial(setup.run_context, state)
    if isinstance(setup.instructions, PerTurn):
        found.system = _system(setup, await setup.instructions.value(state, run), state.system)
    if isinstance(setup.settings, PerTurn):
        settings = settings_of(await setup.settings.value(state, run), f"settings of the agent {setup.name!r}")
        found.settings = state.params.differing(settings)
    if setup.context:
        found.messages, found.view = await shown_of(setup, state, state.messages)
    return found


async def shown_of(
    setup: Setup, state: AgentState, messages: Sequence[Message]
) -> tuple[Sequence[Message], list[Any] | None]:
    """Return what a turn sends of `messages`, and its view.

    Calls without a result and results without a call are mended, and an event reports it.
    """
    shown = messages
    for function in setup.context:
        shown = await function.value(state, partial(setup.run_context, state), shown)
        is_list = isinstance(shown, Shown) or (
            isinstance(shown, Sequence) and all(isinstance(each, Message) for each in shown)
        )
        if not is_list:
            raise UsageError(f"context= of the agent {setup.name!r} must return Messages, got {shown!r:.80}.")
    if isinstance(shown, Shown) and shown.messages is state.messages:
        return shown, shown.view()  # ranges leave out no half of a call
    mended = sanitize_orphan_tool_messages(shown)
    if not mended:
        raise UsageError(f"context= of the agent {setup.name!r} leaves no message to send, got {shown!r:.80}.")
    if len(mended) != len(shown) or any(one is not other for one, other in zip(mended, shown, strict=True)):
        emit("context_repaired", messages_before=len(shown), messages_after=len(mended))
    return mended, view_of(state.messages, mended)


def _system(setup: Setup, text: Any, current: Message | None) -> Message | None:
    """Return the system message; an equal one is the state's."""
    if text is not None and not isinstance(text, str):
        raise UsageError(f"instructions= of the agent {setup.name!r} must return text, got {text!r:.80}.")
    if current is not None and current.body == text:
        return current
    return Message("system", text) if text else None
