"""Stop hooks: hooks that finish a run, each by one simple rule.

They are pure: their counts are part of the run's state. So a resumed run keeps counting, a replay reaches the same end,
and agents can share a hook without sharing its count. The reason of the Finish is the hook's name.
"""

from collections.abc import Callable
from re import Pattern
from typing import Any, Literal, TypeAlias

from .events import (
    AgentEvent,
    AgentStart,
    CompactionEvent,
    GenerationEnd,
    GenerationError,
    GenerationRetry,
    GenerationStep,
    ToolEnd,
    ToolError,
    ToolStep,
)
from .hooks.hook import CountingHook, Hook
from .hooks.patterns import matcher
from .hooks.stop_conditions import StopCondition as StopCondition
from .hooks.stop_conditions import stop_condition as stop_condition
from .reactions import Finish, Reaction

_Counted: TypeAlias = tuple[bool, Any]
"""Whether to stop, and the memory for the next event."""


def step_count(max_steps: int, *, name: str | None = None) -> Hook:
    """Stop after `max_steps` steps of the agent."""
    _at_least(1, max_steps=max_steps)

    def check(event: Any, memory: Any) -> _Counted:
        return event.step >= max_steps, memory

    return _stop(check, (GenerationStep,), name or f"stop_on_step_count({max_steps})")


def generation_count(max_generations: int, *, name: str | None = None) -> Hook:
    """Stop after `max_generations` requests to a model.

    Every request counts: failed and repeated requests, requests that failed for good, and requests for a summary.
    """
    _at_least(1, max_generations=max_generations)

    def check(event: Any, memory: Any) -> _Counted:
        asked = (memory or 0) + _requests(event)
        return asked >= max_generations, asked

    events = (GenerationEnd, GenerationRetry, GenerationError, CompactionEvent)
    return _stop(check, events, name or f"stop_on_generation_count({max_generations})")


def tool_use(tool_name: str, *, count: int = 1, name: str | None = None) -> Hook:
    """Stop after `count` successful calls of the tool that models call so."""
    _at_least(1, count=count)

    def check(event: Any, memory: Any) -> _Counted:
        used = (memory or 0) + (event.tool_call.name == tool_name and event.error is None)
        return used >= count, used

    return _stop(check, (ToolEnd,), name or f"stop_on_tool_use({tool_name}, {count})")


def any_tool_use(*, count: int = 1, name: str | None = None) -> Hook:
    """Stop after `count` calls of any tools, successful or not.

    Each parallel call counts.
    """
    _at_least(1, count=count)

    def check(event: Any, memory: Any) -> _Counted:
        used = (memory or 0) + 1
        return used >= count, used

    return _stop(check, (ToolEnd,), name or f"stop_on_any_tool_use({count})")


def output(
    pattern: str | Pattern[str],
    *,
    case_sensitive: bool = False,
    exact: bool = False,
    regex: bool = False,
    name: str | None = None,
) -> Hook:
    """Stop when the model's last message matches; see `matcher`.

    Tools that the message called have run by then.
    """
    matches = matcher(pattern, case_sensitive=case_sensitive, exact=exact, regex=regex)

    def check(event: Any, memory: Any) -> _Counted:
        return bool(event.messages) and matches(event.messages[-1].content), memory

    return _stop(check, (GenerationEnd,), name or f"stop_on_output('{_pattern_text(pattern)}')")


def tool_output(
    pattern: str | Pattern[str],
    *,
    tool_name: str | None = None,
    case_sensitive: bool = False,
    exact: bool = False,
    regex: bool = False,
    name: str | None = None,
) -> Hook:
    """Stop when a tool's result matches; see `matcher`.

    With `tool_name`, only results of that tool count.
    """
    matches = matcher(pattern, case_sensitive=case_sensitive, exact=exact, regex=regex)

    def check(event: Any, memory: Any) -> _Counted:
        asked = tool_name is None or event.tool_call.name == tool_name
        return asked and event.result is not None and matches(event.result), memory

    return _stop(
        check, (ToolEnd,), name or f"stop_on_tool_output('{_pattern_text(pattern)}', tool={tool_name or 'any'})"
    )


def tool_error(tool_name: str | None = None, *, name: str | None = None) -> Hook:
    """Stop when a call fails, even if the model saw the error.

    With `tool_name`, only calls of that tool count.
    """

    def check(event: Any, memory: Any) -> _Counted:
        return (tool_name is None or event.tool_call.name == tool_name) and event.error is not None, memory

    return _stop(check, (ToolEnd, ToolError), name or f"stop_on_tool_error({tool_name or 'any'})")


def no_new_tool_used(for_steps: int, *, name: str | None = None) -> Hook:
    """Stop after `for_steps` steps in a row without a new tool.

    A tool is new at its first call in the run.
    """
    _at_least(1, for_steps=for_steps)

    def check(event: Any, memory: Any) -> _Counted:
        seen, new, idle = memory or ([], False, 0)
        if isinstance(event, ToolEnd):
            if event.tool_call.name in seen:
                return False, memory
            return False, [[*seen, event.tool_call.name], True, idle]
        idle = 0 if new else idle + 1
        return idle >= for_steps, [list(seen), False, idle]

    return _stop(check, (ToolEnd, GenerationStep), name or f"stop_on_no_new_tool({for_steps})")


def no_tool_calls(for_steps: int = 1, *, name: str | None = None) -> Hook:
    """Stop after `for_steps` steps in a row without a tool call.

    A call that fails is a call, too.
    """
    _at_least(1, for_steps=for_steps)

    def check(event: Any, memory: Any) -> _Counted:
        called, idle = memory or (False, 0)
        if not isinstance(event, GenerationStep):
            return False, memory if called else [True, idle]
        called = called or any(message.tool_calls for message in event.messages)
        idle = 0 if called else idle + 1
        return idle >= for_steps, [False, idle]

    events = (ToolEnd, ToolError, GenerationStep)
    return _stop(check, events, name or f"stop_on_no_tool_calls({for_steps})")


def token_usage(limit: int, *, mode: Literal["total", "in", "out"] = "total", name: str | None = None) -> Hook:
    """Stop when the run has used more than `limit` tokens.

    `mode` selects all tokens, sent tokens ("in") or received tokens ("out"). Usage of tools, such as sub-agents,
    counts.
    """
    _at_least(0, limit=limit)
    fields = {"total": "total_tokens", "in": "input_tokens", "out": "output_tokens"}
    if mode not in fields:
        raise ValueError(f"mode must be total, in or out, got {mode!r}")

    def check(event: Any, memory: Any) -> _Counted:
        used = (memory or 0) + getattr(event.usage, fields[mode])
        return used > limit, used

    return _stop(check, (GenerationEnd, ToolStep), name or f"stop_on_token_usage({limit}, {mode})")


def elapsed_time(max_seconds: float, *, name: str | None = None) -> Hook:
    """Stop when more than `max_seconds` have passed since the run's start.

    The hook measures wall time after each generation, including the time in which a run waits or is interrupted. It
    does not stop a call at work; the budget's `max_runtime_seconds` does.
    """
    _at_least(0, max_seconds=max_seconds)

    def check(event: Any, memory: Any) -> _Counted:
        now = event.timestamp.timestamp()
        if isinstance(event, AgentStart) or memory is None:
            return False, now
        return now - memory > max_seconds, memory

    events = (AgentStart, GenerationEnd)
    return _stop(check, events, name or f"stop_on_elapsed_time({max_seconds}s)", clock=True)


def estimated_cost(limit: float, *, name: str | None = None) -> Hook:
    """Stop when generations have cost more than `limit` US dollars.

    The generations of sub-agents count. A generation without a known price adds nothing here; the budget's
    `max_cost_usd` decides what happens to such a run.
    """
    _at_least(0, limit=limit)

    def check(event: Any, memory: Any) -> _Counted:
        cost = event.cost_usd if isinstance(event, ToolEnd) else event.usage.cost_usd
        spent = (memory or 0.0) + (cost or 0.0)
        return spent > limit, spent

    return _stop(check, (GenerationEnd, ToolEnd), name or f"stop_on_estimated_cost(${limit:.2f})")


def consecutive_errors(count: int, *, name: str | None = None) -> Hook:
    """Stop after `count` failed calls in a row.

    Failures that the model saw count as well. A successful call resets the count.
    """
    _at_least(1, count=count)

    def check(event: Any, memory: Any) -> _Counted:
        failed = 0 if event.error is None else (memory or 0) + 1
        return failed >= count, failed

    return _stop(check, (ToolEnd, ToolError), name or f"stop_on_consecutive_errors({count})")


def _stop(
    check: Callable[[Any, Any], _Counted], events: tuple[type[AgentEvent], ...], name: str, *, clock: bool = False
) -> Hook:
    """Return a hook that finishes the run when `check(event, memory)` is true.

    The start of a run resets the memory.
    """

    def count(event: Any, memory: Any) -> tuple[Reaction | None, Any]:
        if isinstance(event, AgentStart) and AgentStart not in events:
            return None, None
        stop, memory = check(event, memory)
        return (Finish(name) if stop else None), memory

    return CountingHook(count, (AgentStart, *events), name=name, clock=clock)


def _requests(event: AgentEvent) -> int:
    """Return how many requests to a model an event counts.

    A completed compaction counts one request (its summary), or two after an overflow: the failed request and the
    summary.
    """
    if not isinstance(event, CompactionEvent):
        return 1
    if event.compaction_status != "completed":
        return 0
    return 2 if event.trigger == "overflow_recovery" else 1


def _pattern_text(pattern: str | Pattern[str]) -> str:
    return pattern if isinstance(pattern, str) else pattern.pattern


def _at_least(least: int, **given: Any) -> None:
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise ValueError(f"{name} must be a number of at least {least}, got {value!r}")
