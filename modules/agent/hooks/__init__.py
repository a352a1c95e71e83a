"""Hooks: functions that see an agent's events and may react.

`hook` has the decorator, `ready_made` the built-in hooks; `stop_conditions` and `stop_reasons` decide and name the end
of a run, `steps` provides the steps that stop conditions see, `patterns` matches texts.
"""

from ..chat.summarize import find_summarization_boundary, summarize_conversation
from .hook import CountingFunction, CountingHook, EventTypes, Hook, HookFunction, hook, is_async
from .ready_made import summarize_when_long, tool_metrics

__all__ = [
    "CountingFunction",
    "CountingHook",
    "EventTypes",
    "Hook",
    "HookFunction",
    "find_summarization_boundary",
    "hook",
    "is_async",
    "summarize_conversation",
    "summarize_when_long",
    "tool_metrics",
]
