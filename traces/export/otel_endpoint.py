"""Sends spans to an OTLP/HTTP endpoint, through the extra `otel`."""

import logging
from collections.abc import Iterable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...errors import ExportError, ExtraMissingError
from ..trace import Trace
from .otel import OtelSpan, otel_spans
from .otel_names import SCHEMA_URL

_BATCH = 256
"""How many spans one request carries: a few hundred kilobytes without content."""


def send_spans(traces: Iterable[Trace], endpoint: str, *, content: bool = False, timeout: float = 10.0) -> int:
    """Send runs' spans to an OTLP/HTTP endpoint; return their number.

    The spans are sent as protobuf. If `endpoint` has no path, `/v1/traces` is added. Headers, such as keys, come from
    `OTEL_EXPORTER_OTLP_HEADERS`. Raises `ExtraMissingError` without the extra `otel`, and `ExportError` if the endpoint
    rejects the spans.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError:
        raise ExtraMissingError("sending spans", "opentelemetry-exporter-otlp-proto-http", "otel") from None
    parts = urlsplit(endpoint)
    if not parts.hostname:
        raise ExportError(f"{endpoint} is not the address of an endpoint; write http://HOST:4318")
    url = urlunsplit(parts._replace(path="/v1/traces")) if parts.path in ("", "/") else endpoint
    logger, said = logging.getLogger(OTLPSpanExporter.__module__), _Said()
    logger.addHandler(said)
    exporter: Any = OTLPSpanExporter(endpoint=url, timeout=timeout)
    sent = 0
    try:
        spans = iter(otel_spans(traces, content=content))
        while batch := list(islice(spans, _BATCH)):
            result = exporter.export([_readable(span) for span in batch])
            if result is not SpanExportResult.SUCCESS:
                raise ExportError(f"{url} rejected the spans{said.reason()}; {sent} spans were sent before")
            sent += len(batch)
    finally:
        exporter.shutdown()
        logger.removeHandler(said)
    return sent


class _Said(logging.Handler):
    """Keeps the first message that the exporter logs.

    The exporter's result only says that it failed, and its last message only that it gave up.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or " ".join(record.getMessage().split())[:300]

    def reason(self) -> str:
        return f": {self.first.rstrip('.')}" if self.first else ""


def _readable(span: OtelSpan) -> Any:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

    def context(trace_id: int, span_id: int) -> SpanContext:
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    code = (StatusCode.UNSET, StatusCode.OK, StatusCode.ERROR)[span.status]
    return ReadableSpan(
        name=span.name,
        context=context(span.trace_id, span.span_id),
        parent=context(span.trace_id, span.parent_id) if span.parent_id is not None else None,
        resource=Resource({"service.name": "refold"}),
        attributes=span.attributes,
        links=[Link(context(*span.link))] if span.link is not None else [],
        kind=SpanKind.CLIENT if span.kind == 3 else SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope("refold", schema_url=SCHEMA_URL),
        status=Status(code, span.message or None),
        start_time=span.start,
        end_time=span.end,
    )
