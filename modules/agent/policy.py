"""What an Agent wants of its policy, whose classes are in `modules/policies` and are loaded once one is named."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from .hooks.hook import Hook
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
    """A policy's hooks."""
    if policy is None:
        return []
    return list(getattr(policy, "hooks", ()) if _is_overridden_later(policy) else policy.get_hooks())


def _is_overridden_later(policy: Policy) -> bool:
    """Whether `hooks` was overridden by a class further down than the one that has `get_hooks`."""
    places = {name: i for i, cls in reversed(list(enumerate(type(policy).__mro__))) for name in vars(cls)}
    return "hooks" in places and places["hooks"] < places["get_hooks"]
