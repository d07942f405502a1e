"""Spans as OTLP JSON (opentelemetry-proto, docs/specification.md): ids in hex, 64-bit integers as decimal strings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext
from services.common.telemetry.span import Span, Value

_ERROR = 2
# SpanFlags of trace.proto: the sampled flag of W3C, and whether it is known that the parent is in another process.
_SAMPLED, _KNOWN, _REMOTE = 0x001, 0x100, 0x200


def line(resource: Mapping[str, Value], version: str, spans: Sequence[Span]) -> bytes:
    """One TracesData, without line breaks."""
    scope = {"name": c.SCOPE, "version": version}
    data = {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": [_span(span) for span in spans], "schemaUrl": c.SCHEMA_URL}],
                "schemaUrl": c.SCHEMA_URL,
            }
        ]
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def _span(span: Span) -> dict[str, Any]:
    written: dict[str, Any] = {
        **_ids(span.context),
        "name": span.name,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
        "flags": _flags(span.parent),
    }
    if span.parent:
        written["parentSpanId"] = f"{span.parent.span_id:016x}"
    if span.events:
        written["events"] = [
            {"name": event.name, "timeUnixNano": str(event.time_ns), "attributes": _attributes(event.attributes)}
            for event in span.events
        ]
    if span.links:
        written["links"] = [
            {**_ids(link.context), "attributes": _attributes(link.attributes), "flags": _flags(link.context)}
            for link in span.links
        ]
    if span.failed:
        written["status"] = {"code": _ERROR}
    return written


def _ids(context: SpanContext) -> dict[str, str]:
    ids = {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}
    if context.state:
        ids["traceState"] = context.state
    return ids


def _flags(context: SpanContext | None) -> int:
    return _SAMPLED | _KNOWN | (_REMOTE if context and context.remote else 0)


def _attributes(attributes: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
