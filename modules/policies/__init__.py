"""Policies: what stands over the calls of an agent, from rules about tools to a model that judges each call."""

from .headless import HeadlessSessionPolicy
from .registry import (
    PolicySpec,
    get_policy_class,
    register_policy,
    registered_policy_names,
    resolve_policy,
)
from .rules import Rule, ToolRules, Verdict
from .session_policy import InteractiveSessionPolicy, SessionPolicy

for _cls in (InteractiveSessionPolicy, HeadlessSessionPolicy):
    register_policy(_cls)

__all__ = [
    "HeadlessSessionPolicy",
    "InteractiveSessionPolicy",
    "PolicySpec",
    "Rule",
    "SessionPolicy",
    "ToolRules",
    "Verdict",
    "get_policy_class",
    "register_policy",
    "registered_policy_names",
    "resolve_policy",
]
