"""Runs as OpenTelemetry spans, by the semantic conventions for generative AI.

A run is an `invoke_agent` span. Below it are its steps, and in the steps model requests (`chat`), tools
(`execute_tool`), other effects, waits and child runs. Times are those of the trace. Ids are digests of the run's id and
the record's number: another export of the same run has the same ids.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

from ..trace import Trace
from .json_array import write_array
from .otel_facts import Value, facts_of
from .otel_names import SCHEMA_URL
from .timeline import Span, family_runs, spans_of, start_key

INTERNAL, CLIENT = 1, 3
OK, ERROR = 1, 2


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """A span in OpenTelemetry's form; times are nanoseconds since the epoch."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Value]
    status: int
    message: str = ""
    link: tuple[int, int] | None = None
    """The trace id and the span id of the state from which a fork starts."""


def otel_spans(traces: Iterable[Trace], *, content: bool = False) -> Iterator[OtelSpan]:
    """Yield the spans of runs and their child runs, parents first."""
    for trace in traces:
        trace_id = trace_id_of(trace.run_id)
        effects: dict[str, set[int]] = {}
        for run in family_runs(trace):
            parent: int | None = None
            if run.start is not None and run.parent is not None:
                parent = span_id_of(run.parent, start_key(run.start, effects[run.parent]))
            calls = effects.setdefault(run.trace.run_id, set())
            for span in spans_of(run.trace):
                if span.effect is not None and span.name.startswith("refold."):
                    calls.add(span.effect.seq)
                yield _made(run.trace, span, trace_id, parent, content)


def trace_id_of(run_id: str) -> int:
    """Return the trace id of a run and its exported child runs."""
    return int.from_bytes(blake2b(run_id.encode(), digest_size=16).digest()) or 1


def span_id_of(run_id: str, key: str) -> int:
    """Return the id of a run's span; `key` is as in `timeline.Span`."""
    return int.from_bytes(blake2b(f"{run_id}\0{key}".encode(), digest_size=8).digest()) or 1


def write_otlp(traces: Iterable[Trace], out: BinaryIO, *, content: bool = False) -> None:
    """Write runs as one OTLP document in JSON."""
    scope = b'"scope":{"name":"refold"},"schemaUrl":"%b"' % SCHEMA_URL.encode()
    resource = b'{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"refold"}}]}'
    before = b'{"resourceSpans":[%b,"scopeSpans":[{%b,"spans":' % (resource, scope)
    write_array(out, map(_otlp, otel_spans(traces, content=content)), before, b"}]}]}\n")


def _made(trace: Trace, span: Span, trace_id: int, parent: int | None, content: bool) -> OtelSpan:
    facts = facts_of(trace, span, content=content)
    run_id = trace.run_id
    return OtelSpan(
        trace_id=trace_id,
        span_id=span_id_of(run_id, span.key),
        parent_id=parent if span.above is None else span_id_of(run_id, span.above.key),
        name=facts.name,
        kind=CLIENT if facts.is_request else INTERNAL,
        start=_nanoseconds(span.start),
        end=_nanoseconds(span.end),
        attributes=facts.attributes,
        status=ERROR if facts.failed else OK if span.ended else 0,
        message=facts.message,
        link=_origin(trace) if span.kind == "run" else None,
    )


def _origin(trace: Trace) -> tuple[int, int] | None:
    parent = trace.parent
    if parent is None or parent["kind"] != "fork":
        return None
    run, step = str(parent["run"]), parent["step"]
    return trace_id_of(run), span_id_of(run, f"step/{step - 1}" if step else "run")


def _otlp(span: OtelSpan) -> dict[str, Any]:
    document: dict[str, Any] = {
        "traceId": f"{span.trace_id:032x}",
        "spanId": f"{span.span_id:016x}",
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": [{"key": name, "value": _any_value(value)} for name, value in span.attributes.items()],
        "status": {"code": span.status} | ({"message": span.message} if span.message else {}),
    }
    if span.parent_id is not None:
        document["parentSpanId"] = f"{span.parent_id:016x}"
    if span.link is not None:
        document["links"] = [{"traceId": f"{span.link[0]:032x}", "spanId": f"{span.link[1]:016x}"}]
    return document


def _any_value(value: Value) -> Mapping[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}


def _nanoseconds(seconds: float) -> int:
    return max(0, round(seconds * 1_000_000)) * 1000
