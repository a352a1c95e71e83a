"""Built-in hooks: metrics of tools, and summaries of long conversations."""

from datetime import datetime

from ....engine import call_info, emit
from ....engine.errors import NoRunError
from ..events import AgentEvent, GenerationStart, ToolStart, ToolStep
from ..events.metrics import MetricSeries
from ..events.tool_events import failed_call
from ..generators.estimate import estimate_tokens
from ..generators.identifiers import get_generator
from ..generators.protocol import Generator
from ..generators.summarize import (
    conversation_text,
    find_summarization_boundary,
    summarize_conversation,
    summary_message,
)
from ..reactions import Reaction, Retry
from .hook import Hook

_UNDER_WAY = 10_000


def tool_metrics(*, detailed: bool = False) -> Hook:
    """Attach metrics of tools to the ToolStep of each call.

    `trajectory.metrics` collects the metrics. `tool/total_count` is 1 for each call, `tool/success_rate` is 1 or 0, and
    `tool/total_time` is the seconds until the call's result was reported (results of parallel calls are reported when
    all calls have ended). For a whole run, read the `total` of a count or time, and the `mean` of a rate. With
    `detailed`, each tool also has `tool/count.NAME`, `tool/time.NAME`, `tool/avg_time.NAME` and
    `tool/success_rate.NAME`.
    """
    begun: dict[tuple[str, str], datetime] = {}

    async def measure(event: AgentEvent) -> None:
        if isinstance(event, ToolStart):
            while len(begun) >= _UNDER_WAY:  # calls of runs that were cut off
                del begun[next(iter(begun))]
            begun[_run(), event.tool_call.id] = event.timestamp
        elif isinstance(event, ToolStep):
            since = begun.pop((_run(), event.tool_call.id), None)
            _record(event, None if since is None else (event.timestamp - since).total_seconds(), detailed)

    return Hook(measure, (ToolStart, ToolStep), name="tool_metrics")


def _run() -> str:
    """Return the current run's id, or "" outside a run."""
    try:
        return call_info().run_id
    except NoRunError:
        return ""


def _record(event: ToolStep, seconds: float | None, detailed: bool) -> None:
    good = 0.0 if failed_call(event) else 1.0
    name = event.tool_call.name
    numbers = {"tool/total_count": 1.0, "tool/success_rate": good, "tool/total_time": seconds}
    if detailed:
        numbers |= {f"tool/count.{name}": 1.0, f"tool/success_rate.{name}": good}
        numbers |= {f"tool/time.{name}": seconds, f"tool/avg_time.{name}": seconds}
    for metric, value in numbers.items():
        if value is not None:
            event.metrics.setdefault(metric, MetricSeries()).append(value, step=event.step)


def summarize_when_long(
    model: str | Generator | None = None,
    max_tokens: int = 100_000,
    min_messages_to_keep: int = 5,
    *,
    guidance: str = "",
) -> Hook:
    """Summarise the beginning of a conversation when it grows long.

    The hook checks the whole conversation before each request. From about `max_tokens` tokens on, `model` (by default
    the agent's own) writes a summary of the beginning; at least `min_messages_to_keep` messages remain. The summary
    replaces the turn's own request. If the conversation cannot be cut anywhere, nothing happens.
    """
    if max_tokens < 1 or min_messages_to_keep < 1:
        raise ValueError(
            f"max_tokens and min_messages_to_keep must be at least 1, got {max_tokens} and {min_messages_to_keep}"
        )
    own = None if model is None else get_generator(model)

    async def shorten(event: GenerationStart) -> Reaction | None:
        system = [message for message in event.messages if message.role == "system"]
        chat = [message for message in event.messages if message.role != "system"]
        generator = own or event.generator
        if generator is None or estimate_tokens(event.messages) < max_tokens:
            return None
        cut = find_summarization_boundary(chat, min_messages_to_keep)
        if not cut:
            return None
        summary = await summarize_conversation(generator, conversation_text(chat[:cut]), guidance=guidance)
        message = summary_message(summary, cut, "threshold")
        facts = {"messages_before": len(chat), "messages_after": len(chat) - cut + 1, "summary": message.to_dict()}
        emit("compaction", trigger="threshold", compaction_status="completed", **facts)
        return Retry([*system, message, *chat[cut:]])

    return Hook(shorten, GenerationStart, name="summarize_when_long")
