"""Runs as a timeline in Chrome's trace-event format, for ui.perfetto.dev.

Each run is a process. Its steps are one track and its waits another. Effects take as many tracks as ran at once; an
effect is on the track of the call around it if it fits there. A child run is a process of its own, with an arrow from
the call or the step that started it. Counters show tokens and cost.

The format: "Trace Event Format" by the Chromium project; events of the phases X, C, M, s and f.
"""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from ...printable import printable
from ..trace import Trace
from .figures import Figures, step_figures
from .json_array import write_array
from .timeline import Span, family_runs, spans_of, start_key
from .values import in_line

_STEPS, _WAITS, _FIRST_LANE = 1, 2, 3
_NAME = 120


def write_perfetto(traces: Iterable[Trace], out: BinaryIO) -> None:
    """Write runs and their child runs as one timeline."""
    write_array(out, _all_events(traces), b'{"traceEvents":', b',"displayTimeUnit":"ms"}\n')


def _all_events(traces: Iterable[Trace]) -> Iterator[dict[str, Any]]:
    number = 0
    for trace in traces:
        starts: dict[str, tuple[int, set[int]]] = {}
        for run in family_runs(trace):
            number += 1
            process = _Process(run.trace, number)
            yield from process.events()
            starts[run.trace.run_id] = number, process.effects
            if run.start is not None and run.parent is not None:
                above, effects = starts[run.parent]
                key = start_key(run.start, effects)
                yield from _arrow(number, above, key, run.start.record.at, run.trace)


def _arrow(number: int, above: int, key: str, at: float, child: Trace) -> Iterator[dict[str, Any]]:
    arrow = {"name": "starts", "cat": "child", "id": number}
    yield {**arrow, "ph": "s", "ts": _us(at), "pid": above, "tid": _STEPS, "args": {"from": key}}
    yield {**arrow, "ph": "f", "bp": "e", "ts": _us(child.header.at), "pid": number, "tid": _STEPS}


class _Process:
    """The events of one run."""

    def __init__(self, trace: Trace, pid: int) -> None:
        self.trace = trace
        self.pid = pid
        self.effects: set[int] = set()
        """The effects that have a span and may have started a child run."""
        self._lanes: list[list[tuple[float, str]]] = []
        """For each track of effects, the ends and keys of its open spans, outer ones first."""
        self._tokens = 0
        self._cost = 0.0

    def events(self) -> Iterator[dict[str, Any]]:
        yield self._named("process_name", 0, f"{in_line(self.trace.run_id, _NAME)}")
        yield self._named("thread_name", _STEPS, "steps")
        waits = False
        lanes: dict[str, int] = {}
        for span in spans_of(self.trace):
            if span.kind == "run":
                yield self._complete(span, _STEPS)
            elif span.kind == "step":
                lanes.clear()
                self._lanes = [[] for _ in self._lanes]
                yield self._complete(span, _STEPS)
                yield from self._counters(span)
            elif span.kind == "wait":
                waits = True
                yield self._complete(span, _WAITS)
            else:
                yield from self._effect(span, lanes)
        if waits:
            yield self._named("thread_name", _WAITS, "waits")
        for lane in range(len(self._lanes)):
            yield self._named("thread_name", _FIRST_LANE + lane, "effects" if not lane else f"effects, {lane + 1}")

    def _effect(self, span: Span, lanes: dict[str, int]) -> Iterator[dict[str, Any]]:
        assert span.effect is not None
        if span.name.startswith("refold."):
            self.effects.add(span.effect.seq)
        wanted = lanes.get(span.above.key, 0) if span.above is not None else 0
        lane = next((n for n in range(wanted, len(self._lanes)) if self._fits(span, n)), len(self._lanes))
        if lane == len(self._lanes):
            self._lanes.append([])
        self._lanes[lane].append((span.end, span.key))
        lanes[span.key] = lane
        yield self._complete(span, _FIRST_LANE + lane)

    def _fits(self, span: Span, lane: int) -> bool:
        """Return whether a lane is free when a span starts.

        A lane is also free if its innermost span is the span's own caller.
        """
        open_spans = self._lanes[lane]
        while open_spans and open_spans[-1][0] <= span.start:
            open_spans.pop()
        if not open_spans:
            return True
        end, key = open_spans[-1]
        return span.above is not None and key == span.above.key and span.end <= end

    def _counters(self, span: Span) -> Iterator[dict[str, Any]]:
        figures = step_figures(span.step) if span.step is not None else Figures()
        self._tokens += figures.tokens
        self._cost += figures.cost or 0.0
        if figures.tokens:
            counter = {"ph": "C", "pid": self.pid, "tid": 0, "ts": _us(span.end)}
            yield {**counter, "name": "tokens", "args": {"tokens": self._tokens}}
            yield {**counter, "name": "cost in USD", "args": {"USD": self._cost}}

    def _complete(self, span: Span, tid: int) -> dict[str, Any]:
        start = _us(span.start)
        return {
            "name": in_line(span.name, _NAME),
            "cat": span.kind,
            "ph": "X",
            "ts": start,
            "dur": max(0, _us(span.end) - start),
            "pid": self.pid,
            "tid": tid,
            "args": dict(_facts(span)),
        }

    def _named(self, name: str, tid: int, value: str) -> dict[str, Any]:
        return {"name": name, "ph": "M", "pid": self.pid, "tid": tid, "args": {"name": value}}


def _facts(span: Span) -> Iterator[tuple[str, Any]]:
    yield "id", printable(span.key)
    if not span.ended:
        yield "unfinished", True
    if span.kind == "step" and span.step is not None:
        decision = span.step.decision or {}
        if decision.get("rationale"):
            yield "rationale", in_line(str(decision["rationale"]))
        if span.step.change_count is not None:
            yield "changes", span.step.change_count
    if span.effect is not None:
        effect = span.effect
        yield "phase", printable(effect.phase)
        if effect.seconds is not None:
            yield "seconds", effect.seconds
        if effect.error is not None:
            yield "error", in_line(f"{effect.error.get('type')}: {effect.error.get('message')}")
        if effect.cancelled:
            yield "cancelled", True
        if effect.usage:
            yield "tokens", effect.usage.get("tokens_in", 0) + effect.usage.get("tokens_out", 0)
    if span.request is not None:
        yield "prompt", in_line(str(span.request.get("prompt") or ""))


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
