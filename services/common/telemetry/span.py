"""A span, from its beginning until it is exported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from services.common.clock import epoch_ns
from services.common.telemetry.context import SpanContext
from services.common.telemetry.conventions import ERROR_TYPE, Kind

Value = str | int | float | bool
Attributes = dict[str, Value]


class Event(NamedTuple):
    name: str
    time_ns: int
    attributes: Attributes


class SpanLink(NamedTuple):
    context: SpanContext
    attributes: Attributes


@dataclass(slots=True)
class Span:
    """Times are Unix nanoseconds; `end_ns` is 0 while the span is open."""

    name: str
    kind: Kind
    context: SpanContext
    parent: SpanContext | None = None
    attributes: Attributes = field(default_factory=dict)
    links: list[SpanLink] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    start_ns: int = field(default_factory=epoch_ns)
    end_ns: int = 0
    failed: bool = False

    def event(self, name: str, attributes: Attributes | None = None) -> None:
        """Adds an event that happens now."""
        self.events.append(Event(name, epoch_ns(), attributes or {}))

    def fail(self, error_type: str) -> None:
        """Marks the span's operation as failed."""
        self.failed = True
        self.attributes[ERROR_TYPE] = error_type
