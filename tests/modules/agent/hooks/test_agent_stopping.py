"""What each stop hook counts, on scripted sequences of events, as its page promises."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from each_case import each_case

from refold.modules.agent import Message, ToolCall, Usage
from refold.modules.agent.events import (
    AgentEvent,
    AgentStart,
    CompactionEvent,
    GenerationEnd,
    GenerationError,
    GenerationRetry,
    GenerationStep,
    ToolEnd,
    ToolError,
)
from refold.modules.agent.hooks import Hook
from refold.modules.agent.hooks.hook import CountingHook
from refold.modules.agent.reactions import Finish
from refold.modules.agent.stopping import (
    any_tool_use,
    consecutive_errors,
    elapsed_time,
    estimated_cost,
    generation_count,
    no_new_tool_used,
    no_tool_calls,
    output,
    step_count,
    token_usage,
    tool_error,
    tool_output,
    tool_use,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def stops_at(hook: Hook, events: Sequence[AgentEvent], memory: Any = None) -> int | None:
    """The place of the first event at which the hook finishes; its memory goes through JSON after each."""
    assert isinstance(hook, CountingHook)
    for i, event in enumerate(events):
        before = orjson.dumps(memory)
        reaction, after = hook.count(event, memory)
        assert orjson.dumps(memory) == before, "a pure hook changes nothing that it is given"
        memory = orjson.loads(orjson.dumps(after))
        if reaction is not None:
            assert reaction == Finish(hook.name)
            return i
    return None


def remembered(hook: Hook, events: Sequence[AgentEvent]) -> Any:
    assert isinstance(hook, CountingHook)
    memory = None
    for event in events:
        memory = orjson.loads(orjson.dumps(hook.count(event, memory)[1]))
    return memory


def end(name: str = "find", result: str = "ok", error: str | None = None, cost: float | None = None) -> ToolEnd:
    return ToolEnd(tool_call=ToolCall.of("c", name, {}), result=result, error=error, cost_usd=cost)


def broken(name: str = "find") -> ToolError:
    return ToolError(tool_call=ToolCall.of("c", name, {}), error=ValueError("no"))


def said(text: str = "", tokens: int = 0, cost: float | None = None, at: float = 0.0) -> GenerationEnd:
    usage = Usage(input_tokens=tokens, output_tokens=2 * tokens, total_tokens=3 * tokens, cost_usd=cost)
    when = START + timedelta(seconds=at)
    return GenerationEnd(messages=[Message("assistant", text)], usage=usage, timestamp=when)


def step(number: int = 1, *calls: str) -> GenerationStep:
    asked = [ToolCall.of(f"c{i}", name, {}) for i, name in enumerate(calls)]
    return GenerationStep(step=number, messages=[Message("assistant", "", tool_calls=asked)])


CASES: list[tuple[str, Callable[[], Hook], list[AgentEvent], int | None]] = [
    ("steps", lambda: step_count(2), [step(1), step(2), step(3)], 1),
    ("steps not reached", lambda: step_count(9), [step(1), step(2)], None),
    ("generations", lambda: generation_count(2), [said(), step(), said(), step()], 2),
    ("retries are generations", lambda: generation_count(3), [GenerationRetry(), GenerationRetry(), said()], 2),
    ("failures are, too", lambda: generation_count(2), [GenerationRetry(), GenerationError(error=OSError("x"))], 1),
    ("and summaries", lambda: generation_count(3), [CompactionEvent(trigger="overflow_recovery"), said()], 1),
    ("which were made", lambda: generation_count(1), [CompactionEvent(compaction_status="skipped")], None),
    ("a tool", lambda: tool_use("find", count=2), [end(), end("look"), end()], 2),
    ("used with success", lambda: tool_use("find"), [end(error="bad"), broken(), end()], 2),
    ("any tool", lambda: any_tool_use(count=3), [end(), end("look", error="bad"), end()], 2),
    ("output", lambda: output("fin"), [said("not yet"), said("FINished")], 1),
    ("output by case", lambda: output("fin", case_sensitive=True), [said("FIN"), said("fin")], 1),
    ("exact output", lambda: output("done", exact=True), [said("done!"), said("Done")], 1),
    ("output by regex", lambda: output(r"^a.c$", regex=True), [said("xabc"), said("ABC")], 1),
    ("compiled patterns keep their flags", lambda: output(re.compile("abc")), [said("ABC"), said("abc")], 1),
    ("text is not a regex", lambda: output("a.c"), [said("abc"), said("a.c")], 1),
    ("tool output", lambda: tool_output("flag"), [end(result="no"), end(result="the FLAG")], 1),
    ("of a tool", lambda: tool_output("x", tool_name="look"), [end(result="x"), end("look", "x")], 1),
    ("no output", lambda: tool_output(""), [ToolEnd(tool_call=ToolCall.of("c", "f", {}), result=None)], None),
    ("an error that nobody caught", lambda: tool_error(), [end(), broken()], 1),
    ("an error that the model was told of", lambda: tool_error(), [end(), end(error="bad")], 1),
    ("of one tool", lambda: tool_error("look"), [end(error="bad"), broken(), end("look", error="bad")], 2),
    ("no new tool", lambda: no_new_tool_used(2), [end(), step(), end(), step(), end(), step()], 5),
    ("a new one starts anew", lambda: no_new_tool_used(1), [end(), step(), end(), end("look"), step(), step()], 5),
    ("steps without tools bring none", lambda: no_new_tool_used(2), [step(), step()], 1),
    ("no calls", lambda: no_tool_calls(), [step(1, "find"), step(2)], 1),
    ("in a row", lambda: no_tool_calls(2), [step(1), step(2, "find"), step(3), step(4)], 3),
    ("ends of tools are calls", lambda: no_tool_calls(1), [end(), step(), broken(), step(), step()], 4),
    ("tokens add up", lambda: token_usage(40), [said(tokens=5)] * 3, 2),
    ("a limit may be reached", lambda: token_usage(30), [said(tokens=5)] * 2, None),
    ("tokens in", lambda: token_usage(9, mode="in"), [said(tokens=5)] * 3, 1),
    ("tokens out", lambda: token_usage(9, mode="out"), [said(tokens=5)], 0),
    ("time", lambda: elapsed_time(10), [AgentStart(timestamp=START), said(at=10), said(at=10.5)], 2),
    ("time without a start", lambda: elapsed_time(10), [said(at=0), said(at=11)], 1),
    ("cost adds up", lambda: estimated_cost(1.0), [said(tokens=1, cost=0.6)] * 2, 1),
    ("no price is not a cost", lambda: estimated_cost(0.0), [said(tokens=10_000)] * 3, None),
    ("what sub-agents cost", lambda: estimated_cost(1.0), [said(tokens=1, cost=0.6), end(cost=0.5)], 1),
    ("errors in a row", lambda: consecutive_errors(2), [end(error="x"), broken()], 1),
    ("broken by a success", lambda: consecutive_errors(2), [broken(), end(), end(error="x"), end(error="x")], 3),
]


def test_a_hook_stops_where_it_should() -> None:
    def law(name: str, make: Callable[[], Hook], events: list[AgentEvent], place: int | None) -> None:
        assert stops_at(make(), events) == place

    each_case(law, CASES)


def test_a_start_makes_it_forget() -> None:
    def law(name: str, make: Callable[[], Hook], events: list[AgentEvent], place: int | None) -> None:
        hook = make()
        started = events if isinstance(events[0], AgentStart) else [AgentStart(timestamp=START), *events]
        expected = stops_at(hook, started)
        first = [e for e in events if not isinstance(e, AgentStart)][:1]
        assert stops_at(hook, started, remembered(hook, first)) == expected

    each_case(law, CASES)


def test_a_run_that_is_resumed_counts_on() -> None:
    def law(name: str, make: Callable[[], Hook], events: list[AgentEvent], place: int | None) -> None:
        for cut in range(len(events)):
            if place is not None and cut > place:
                break
            memory = remembered(make(), events[:cut])
            found = stops_at(make(), events[cut:], memory)
            assert (None if found is None else found + cut) == place

    each_case(law, CASES)


def test_two_agents_share_a_hook_and_each_has_its_own_count() -> None:
    """Seen elsewhere: a shared `any_tool_use(count=4)` stopped its agents after 3 and 2 uses."""
    hook = any_tool_use(count=3)
    assert isinstance(hook, CountingHook)
    memories: list[Any] = [None, None]
    stopped: list[list[int]] = [[], []]
    for use in range(1, 4):
        for agent in (0, 1):
            reaction, memories[agent] = hook.count(end(), memories[agent])
            if reaction is not None:
                stopped[agent].append(use)
    assert stopped == [[3], [3]]


def test_names_are_the_default_reasons() -> None:
    assert [
        hook.name
        for hook in (
            step_count(3),
            generation_count(3),
            tool_use("find", count=2),
            any_tool_use(),
            output("p"),
            tool_output(re.compile("p"), tool_name="find"),
            tool_output("p"),
            tool_error("find"),
            tool_error(),
            no_new_tool_used(2),
            no_tool_calls(),
            token_usage(10, mode="in"),
            elapsed_time(1.5),
            estimated_cost(0.5),
            consecutive_errors(2),
        )
    ] == [
        "stop_on_step_count(3)",
        "stop_on_generation_count(3)",
        "stop_on_tool_use(find, 2)",
        "stop_on_any_tool_use(1)",
        "stop_on_output('p')",
        "stop_on_tool_output('p', tool=find)",
        "stop_on_tool_output('p', tool=any)",
        "stop_on_tool_error(find)",
        "stop_on_tool_error(any)",
        "stop_on_no_new_tool(2)",
        "stop_on_no_tool_calls(1)",
        "stop_on_token_usage(10, in)",
        "stop_on_elapsed_time(1.5s)",
        "stop_on_estimated_cost($0.50)",
        "stop_on_consecutive_errors(2)",
    ]
    assert step_count(1, name="enough").name == "enough"
    assert step_count(1).__name__ == "stop_on_step_count(1)"


@pytest.mark.parametrize(
    "make",
    [
        lambda: step_count(0),
        lambda: generation_count(0),
        lambda: tool_use("x", count=0),
        lambda: no_tool_calls(0),
        lambda: token_usage(-1),
        lambda: token_usage(1, mode="all"),  # type: ignore[arg-type]
        lambda: elapsed_time(float("nan")),
        lambda: output("(", regex=True),
        lambda: step_count(True),
    ],
)
def test_what_cannot_be_counted_is_refused_at_once(make: Callable[[], Hook]) -> None:
    with pytest.raises(ValueError):
        make()


def test_only_elapsed_time_reads_a_clock() -> None:
    timed = elapsed_time(1)
    plain = step_count(1)
    assert isinstance(timed, CountingHook)
    assert timed.clock
    assert isinstance(plain, CountingHook)
    assert not plain.clock
