"""Sends spans to an OTLP/HTTP endpoint, through the extra `otel`."""

import logging
from collections.abc import Iterable
from itertools import islice
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...errors import ExportError, ExtraMissingError
from ..trace import Trace

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

        from .otel import otel_spans
    except ImportError:
        raise ExtraMissingError("sending spans", "opentelemetry-exporter-otlp-proto-http", "otel") from None
    parts = urlsplit(endpoint)
    if not parts.hostname:
        raise ExportError(f"{endpoint} is not the address of an endpoint; write http://HOST:4318")
    url = urlunsplit(parts._replace(path="/v1/traces")) if parts.path in ("", "/") else endpoint
    session, logged = _noting_session(), _Logged()
    logger = logging.getLogger(OTLPSpanExporter.__module__)
    logger.addHandler(logged)
    exporter: Any = OTLPSpanExporter(endpoint=url, timeout=timeout, session=session)
    sent = 0
    try:
        spans = iter(otel_spans(traces, content=content))
        while batch := list(islice(spans, _BATCH)):
            result = exporter.export(batch)
            if result is not SpanExportResult.SUCCESS:
                reason = session.problem or f"got no spans: {logged.first}"
                raise ExportError(f"{url} {reason}; {sent} spans were sent before")
            sent += len(batch)
    finally:
        exporter.shutdown()
        logger.removeHandler(logged)
    return sent


def _noting_session() -> Any:
    """Return an HTTP session that keeps a failure's reason as `problem`.

    The exporter's result only says that it failed, and its log wraps the system's words in those of three libraries.
    """
    import requests

    class Noting(requests.Session):
        problem = ""

        def send(self, request: Any, **options: Any) -> Any:
            try:
                answer = super().send(request, **options)
            except requests.RequestException as error:
                self.problem = f"gives no answer: {_root(error)}"
                raise
            if not answer.ok:
                self.problem = f"rejected the spans: {answer.status_code} {answer.reason}"
            return answer

    return Noting()


def _root(error: BaseException) -> str:
    """Return the message of the first error in a chain of causes."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


class _Logged(logging.Handler):
    """Keeps the first message that the exporter logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._first: str | None = None

    @property
    def first(self) -> str:
        """The message, or words in its place."""
        return self._first or "the exporter does not say why"

    def emit(self, record: logging.LogRecord) -> None:
        self._first = self._first or " ".join(record.getMessage().split()).rstrip(".")
