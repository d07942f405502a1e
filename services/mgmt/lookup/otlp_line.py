"""A line of OTLP JSON as spans (opentelemetry-proto, TracesData). Any program may have written it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from services.common.telemetry.conventions import SCOPE, SERVICE_NAME, Kind
from services.common.trace import Span

_KINDS = {kind.value: kind.name.lower() for kind in Kind} | {
    f"SPAN_KIND_{kind.name}": kind.name.lower() for kind in Kind
}
_FAILED = {2, "STATUS_CODE_ERROR"}
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def spans_in(line: bytes) -> Iterator[Span]:
    """Those of a line; none of one that is something else, and none that is not whole."""
    try:
        data = _loaded(line)
    except (RecursionError, ValueError):
        return
    for of_resource in _list(data, "resourceSpans"):
        service = _attributes(_list(of_resource.get("resource"), "attributes")).get(SERVICE_NAME, "")
        for of_scope in _list(of_resource, "scopeSpans"):
            broker = _object(of_scope, "scope").get("name") == SCOPE
            for span in _list(of_scope, "spans"):
                try:
                    yield _span(span, str(service), broker=broker)
                except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
                    continue


def _loaded(line: bytes) -> Any:  # noqa: ANN401 - JSON
    """JSON can say half a character, which nobody could write down again: it becomes a question mark."""
    text = line.decode()
    data = json.loads(text)
    if _HALF.search(text):
        data = json.loads(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
    return data


def _span(span: Mapping[str, Any], service: str, *, broker: bool) -> Span:
    return Span(
        trace_id=span["traceId"].lower(),
        span_id=span["spanId"].lower(),
        parent_id=(span.get("parentSpanId") or "").lower() or None,
        name=span.get("name", ""),
        service=service,
        broker=broker,
        kind=_KINDS.get(span.get("kind", 0), "unspecified"),
        start_us=int(span["startTimeUnixNano"]) // 1000,
        end_us=int(span["endTimeUnixNano"]) // 1000,
        failed=_object(span, "status").get("code") in _FAILED,
        attributes=_attributes(_list(span, "attributes")),
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, str | int | float | bool]:
    return {pair["key"]: _value(pair.get("value")) for pair in pairs if isinstance(pair.get("key"), str)}


def _value(value: Any) -> str | int | float | bool:  # noqa: ANN401 - JSON
    kind, its = next(iter(value.items()), ("", "")) if isinstance(value, dict) else ("", "")
    try:
        if kind == "intValue":
            return int(its)
        # What is no number is none in JSON either.
        plain = isinstance(its, str | int) or (isinstance(its, float) and isfinite(its))
        return its if plain else json.dumps(its)
    except (OverflowError, RecursionError, TypeError, ValueError):
        return ""


def _object(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _list(data: Any, name: str) -> list[Any]:  # noqa: ANN401 - JSON
    found = data.get(name) if isinstance(data, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
