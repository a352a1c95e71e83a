"""Hooks: functions that are shown what happens to an agent, and may answer with a reaction.

`hook` has the decorator, `ready_made` the hooks that come along; `stop_conditions` and `stop_reasons` say when a run
ends, `patterns` how texts are matched.
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
