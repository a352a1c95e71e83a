"""Policies: checks of an agent's calls, by rules or by a model."""

from .guard import GuardSessionPolicy
from .headless import HeadlessSessionPolicy
from .judge.judge import JudgeError, ProcessDecision, ProcessJudge
from .judge.transcripts import TranscriptStrategy
from .judge_hook import process_judge_hook
from .registry import (
    PolicySpec,
    get_policy_class,
    register_policy,
    registered_policy_names,
    resolve_policy,
)
from .rules import Rule, RuleVerdict, ToolRules
from .session_policy import InteractiveSessionPolicy, SessionPolicy
from .spec import policy_from_text

for _cls in (InteractiveSessionPolicy, HeadlessSessionPolicy, GuardSessionPolicy):
    register_policy(_cls)

__all__ = [
    "GuardSessionPolicy",
    "HeadlessSessionPolicy",
    "InteractiveSessionPolicy",
    "JudgeError",
    "PolicySpec",
    "ProcessDecision",
    "ProcessJudge",
    "Rule",
    "RuleVerdict",
    "SessionPolicy",
    "ToolRules",
    "TranscriptStrategy",
    "get_policy_class",
    "policy_from_text",
    "process_judge_hook",
    "register_policy",
    "registered_policy_names",
    "resolve_policy",
]
