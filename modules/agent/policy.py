"""What an Agent wants of its policy, whose classes are in `modules/policies` and are loaded once one is named."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from ...engine import BudgetExceeded, DivergenceError, RunClosed
from .events import AgentEvent, ToolStart
from .hooks import CountingHook, Hook
from .reactions import Reaction, RetryWithFeedback
from .recorded_errors import error_type
from .tools import Tool

log = logging.getLogger("refold")


@runtime_checkable
class Policy(Protocol):
    """What stands over the calls of an Agent; see `refold.modules.policies.SessionPolicy`."""

    def get_hooks(self) -> list[Hook]:
        """The hooks that hold for each run."""

    def offered(self, tools: Sequence[Tool[..., Any]]) -> list[Tool[..., Any]]:
        """Those of the tools that the model is told of."""

    def describe(self) -> dict[str, Any]:
        """Its name and settings as JSON, without keys."""

    def surroundings(self) -> AbstractContextManager[None]:
        """What tools are called in."""


def as_policy(given: Any) -> Policy | None:
    """A policy from a policy, a name, or a dict of a name and settings; None stays None.

    Raises ValueError for a name or settings that there are none of, TypeError for anything else.
    """
    if given is None or (isinstance(given, Policy) and not isinstance(given, type)):
        return given
    if isinstance(given, str | Mapping):
        return cast(Policy, import_module("...policies", __name__).resolve_policy(given))
    raise ValueError(f"a policy is a name, a dict with a name, or a SessionPolicy; got {type(given).__name__}")


def hooks_of(policy: Policy | None) -> list[Hook]:
    """A policy's hooks, each so that a call is denied where the hook fails."""
    if policy is None:
        return []
    given = getattr(policy, "hooks", ()) if _is_overridden_later(policy) else policy.get_hooks()
    return [ClosedCount(hook) if isinstance(hook, CountingHook) else ClosedHook(hook) for hook in given]


def _is_overridden_later(policy: Policy) -> bool:
    """Whether `hooks` was overridden by a class further down than the one that has `get_hooks`."""
    places = {name: i for i, cls in reversed(list(enumerate(type(policy).__mro__))) for name in vars(cls)}
    return "hooks" in places and places["hooks"] < places["get_hooks"]


class ClosedHook(Hook):
    """A policy's hook: where it raises on the start of a tool, the call is denied."""

    def __init__(self, hook: Hook) -> None:
        super().__init__(hook.func, hook.event_type, name=hook.name)
        self.inner = hook

    async def react(self, event: AgentEvent) -> Reaction | None:
        """What the hook answers, or a denial."""
        try:
            return await self.inner.react(event)
        except (BudgetExceeded, RunClosed, DivergenceError):
            raise
        except Exception as error:
            if not isinstance(event, ToolStart):
                raise
            log.warning("the policy's hook %r raised; the call is denied", self.name, exc_info=True)
            return _denied(self.name, event, error)


class ClosedCount(CountingHook):
    """A policy's counting hook: where it raises on the start of a tool, the call is denied."""

    def __init__(self, hook: CountingHook) -> None:
        super().__init__(cast(Any, hook.func), hook.event_type, name=hook.name, clock=hook.clock)

    def count(self, event: AgentEvent, memory: Any) -> tuple[Reaction | None, Any]:
        """What the hook answers, or a denial."""
        try:
            return super().count(event, memory)
        except Exception as error:
            if not isinstance(event, ToolStart):
                raise
            return _denied(self.name, event, error), memory


def _denied(hook: str, event: ToolStart, error: Exception) -> Reaction:
    why = f"the policy's hook {hook!r} failed with {error_type(error)}, and nothing is allowed without it"
    return RetryWithFeedback(why, tool_call_id=event.tool_call.id)
