"""Policies: checks of an agent's calls, by rules or by a model."""

from .guard import GuardSessionPolicy
from .headless import HeadlessSessionPolicy
from .judge.judge import ProcessDecision, ProcessJudge
from .judge_hook import process_judge_hook
from .registry import get_policy_class, register_policy, registered_policy_names, resolve_policy
from .rules.tool_rules import ToolRules
from .session_policy import InteractiveSessionPolicy, SessionPolicy

for _cls in (InteractiveSessionPolicy, HeadlessSessionPolicy, GuardSessionPolicy):
    register_policy(_cls)

__all__ = [
    "GuardSessionPolicy",
    "HeadlessSessionPolicy",
    "InteractiveSessionPolicy",
    "ProcessDecision",
    "ProcessJudge",
    "SessionPolicy",
    "ToolRules",
    "get_policy_class",
    "process_judge_hook",
    "register_policy",
    "registered_policy_names",
    "resolve_policy",
]
