"""Spans as OTLP JSON (opentelemetry-proto, docs/specification.md): ids in hex, 64-bit integers as decimal strings.

Text is put together piece by piece: a tree of dictionaries for `json.dumps` takes five times as long, and for that time
the message path does not have the interpreter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring as quoted

from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext
from services.common.telemetry.span import Span, Value

_FAILED = ',"status":{"code":2}'
# SpanFlags of trace.proto: W3C's sampled flag; the parent's place is known; the parent is in another process.
_SAMPLED, _KNOWN, _REMOTE = 0x001, 0x100, 0x200


def line(resource: Mapping[str, Value], version: str, spans: Sequence[Span]) -> bytes:
    """One TracesData, without line breaks."""
    schema = f'"schemaUrl":{quoted(c.SCHEMA_URL)}'
    scope = f'{{"name":{quoted(c.SCOPE)},"version":{quoted(version)}}}'
    scope_spans = f'{{"scope":{scope},"spans":{_list(map(_span, spans))},{schema}}}'
    resource_spans = f'{{"resource":{{"attributes":{_attributes(resource)}}},"scopeSpans":[{scope_spans}],{schema}}}'
    return f'{{"resourceSpans":[{resource_spans}]}}'.encode(errors="replace")


def _span(span: Span) -> str:
    parent = f',"parentSpanId":"{span.parent.span_id:016x}"' if span.parent else ""
    events = [
        f'{{"name":{quoted(name)},"timeUnixNano":"{time_ns}","attributes":{_attributes(attributes)}}}'
        for name, time_ns, attributes in span.events
    ]
    links = [
        f'{{{_ids(context)},"attributes":{_attributes(attributes)},"flags":{_flags(context)}}}'
        for context, attributes in span.links
    ]
    return (
        f'{{{_ids(span.context)}{parent},"name":{quoted(span.name)},"kind":{span.kind:d},'
        f'"startTimeUnixNano":"{span.start_ns}","endTimeUnixNano":"{span.end_ns}",'
        f'"attributes":{_attributes(span.attributes)},"flags":{_flags(span.parent)}'
        f"{_some('events', events)}{_some('links', links)}{_FAILED if span.failed else ''}}}"
    )


def _ids(context: SpanContext) -> str:
    state = f',"traceState":{quoted(context.state)}' if context.state else ""
    return f'"traceId":"{context.trace_id:032x}","spanId":"{context.span_id:016x}"{state}'


def _flags(context: SpanContext | None) -> int:
    return _SAMPLED | _KNOWN | (_REMOTE if context and context.remote else 0)


def _attributes(attributes: Mapping[str, Value]) -> str:
    return _list(_key(key) + _value(value) for key, value in attributes.items())


@lru_cache(maxsize=512)
def _key(key: str) -> str:
    return f'{{"key":{quoted(key)},"value":'


def _value(value: Value) -> str:
    if isinstance(value, str):
        return f'{{"stringValue":{quoted(value)}}}}}'
    if isinstance(value, bool):
        return '{"boolValue":true}}' if value else '{"boolValue":false}}'
    if isinstance(value, int):
        return f'{{"intValue":"{value}"}}}}'
    return f'{{"doubleValue":{json.dumps(value)}}}}}'


def _some(name: str, items: Sequence[str]) -> str:
    return f',"{name}":{_list(items)}' if items else ""


def _list(items: Iterable[str]) -> str:
    return f"[{','.join(items)}]"
