"""Spans to a collector: OpenTelemetry's own OTLP exporters, set up by the standard environment variables.

Imported only where an endpoint is named: it brings the SDK with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanKind, TraceFlags, TraceState
from opentelemetry.trace import SpanContext as OtelContext
from opentelemetry.trace.status import Status, StatusCode

from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext
from services.common.telemetry.span import Span, Value

_KINDS = {
    c.Kind.INTERNAL: SpanKind.INTERNAL,
    c.Kind.SERVER: SpanKind.SERVER,
    c.Kind.CLIENT: SpanKind.CLIENT,
    c.Kind.PRODUCER: SpanKind.PRODUCER,
    c.Kind.CONSUMER: SpanKind.CONSUMER,
}


class NotTaken(Exception):
    """The collector refused spans, or could not be reached for as long as the exporter tries."""


class OtlpExporter:
    """An Exporter (services.common.telemetry.export)."""

    def __init__(self, resource: Mapping[str, Value], version: str) -> None:
        self._exporter = _create()
        self._resource = Resource(dict(resource), c.SCHEMA_URL)
        self._scope = InstrumentationScope(c.SCOPE, version, c.SCHEMA_URL)

    def export(self, spans: Sequence[Span]) -> None:
        """Raises NotTaken."""
        if self._exporter.export([self._readable(span) for span in spans]) is not SpanExportResult.SUCCESS:
            raise NotTaken("the OTLP endpoint did not take spans; see OTEL_EXPORTER_OTLP_ENDPOINT")

    def close(self) -> None:
        """Ends the connection."""
        self._exporter.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            name=span.name,
            context=_context(span.context),
            parent=_context(span.parent) if span.parent else None,
            resource=self._resource,
            attributes=span.attributes,
            events=[Event(event.name, event.attributes, event.time_ns) for event in span.events],
            links=[Link(_context(link.context), link.attributes) for link in span.links],
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR) if span.failed else Status(),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )


def _create() -> SpanExporter:
    """The exporter of the protocol that the environment names; http/protobuf is the specification's default."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415 - one of the two is used
            OTLPSpanExporter as OverGrpc,
        )

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - as above
        OTLPSpanExporter as OverHttp,
    )

    return OverHttp()


def _context(context: SpanContext) -> OtelContext:
    state = TraceState.from_header([context.state]) if context.state else None
    return OtelContext(context.trace_id, context.span_id, context.remote, TraceFlags(TraceFlags.SAMPLED), state)
