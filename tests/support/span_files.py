"""The spans that a stack has written to files, and those of the applications that a test runs."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = range(1, 6)
_SECONDS = 20.0


@dataclass(frozen=True)
class Seen:
    """A span of any maker; ids in hex, `parent` and `links` are span ids."""

    service: str
    name: str
    kind: int
    trace: str
    span: str
    parent: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    links: list[str]
    failed: bool
    start_ns: int
    end_ns: int


def of_broker(folder: Path) -> list[Seen]:
    """Everything in the files under `folder`."""
    found = []
    for path in sorted(folder.glob("date=*/*.jsonl")):
        for line in path.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):  # it is being written
                continue
            for of_resource in json.loads(line)["resourceSpans"]:
                resource = _attributes(of_resource["resource"]["attributes"])
                for of_scope in of_resource["scopeSpans"]:
                    found += [_seen(resource["service.name"], span) for span in of_scope["spans"]]
    return found


def of_application(spans: Iterable[ReadableSpan]) -> list[Seen]:
    """Spans of an SDK's exporter in memory."""
    return [
        Seen(
            "application",
            span.name,
            span.kind.value + 1,
            f"{span.context.trace_id:032x}",
            f"{span.context.span_id:016x}",
            f"{span.parent.span_id:016x}" if span.parent else "",
            dict(span.attributes or {}),
            [],
            [f"{link.context.span_id:016x}" for link in span.links],
            failed=False,
            start_ns=span.start_time or 0,
            end_ns=span.end_time or 0,
        )
        for span in spans
    ]


def wait_for(folder: Path, enough: Callable[[list[Seen]], bool]) -> list[Seen]:
    """The broker's spans as soon as they are enough; fails after a while."""
    deadline = time.monotonic() + _SECONDS
    while not enough(spans := of_broker(folder)):
        names = sorted(f"{span.service} {span.name} {span.attributes.get('hopline.outcome', '')}" for span in spans)
        assert time.monotonic() < deadline, f"not enough spans: {names}"
        time.sleep(0.05)
    return spans


def one(spans: Iterable[Seen], name: str, trace: str = "") -> Seen:
    """The only span of a name, in a trace if that is given."""
    [found] = [span for span in spans if span.name == name and trace in ("", span.trace)]
    return found


def names_of(spans: Iterable[Seen], trace: str = "") -> set[str]:
    """What the spans of a trace are called: processes write theirs in any order, so a test waits for each it reads."""
    return {span.name for span in spans if trace in ("", span.trace)}


def _seen(service: str, span: dict[str, Any]) -> Seen:
    return Seen(
        service,
        span["name"],
        span["kind"],
        span["traceId"],
        span["spanId"],
        span.get("parentSpanId", ""),
        _attributes(span["attributes"]),
        [(event["name"], _attributes(event["attributes"])) for event in span.get("events", ())],
        [link["spanId"] for link in span.get("links", ())],
        span.get("status", {}).get("code") == 2,
        int(span["startTimeUnixNano"]),
        int(span["endTimeUnixNano"]),
    )


def _attributes(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair["value"]) for pair in pairs}


def _value(value: dict[str, Any]) -> Any:
    [(kind, what)] = value.items()
    return int(what) if kind == "intValue" else what
