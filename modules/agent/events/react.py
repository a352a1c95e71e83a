"""The event of a hook's reaction."""

from typing import Any

from ..generators.recorded_error import error_text
from .base import AgentStep
from .fields import OptionalReaction


class ReactStep(AgentStep):
    """A hook's reaction takes effect; `messages` are its additions.

    Hooks cannot react to this event.

    Attributes:
        hook_name: the hook's name.
        reaction: the reaction.
    """

    hook_name: str | None = None
    reaction: OptionalReaction = None

    def data(self) -> dict[str, Any]:
        """Return the hook and the reaction."""
        return {"hook_name": self.hook_name, "reaction": self._reaction_document(), "step": self.step}

    def _reaction_document(self) -> dict[str, Any] | None:
        if self.reaction is None:
            return None
        document = self.reaction.to_dict()
        error = getattr(self.reaction, "error", None)
        if error is not None:
            document["error"] = error_text(error)
        if isinstance(document.get("messages"), list):
            document["messages"] = len(document["messages"])
        return document
