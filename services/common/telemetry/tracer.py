"""A process's spans: the service that makes them, whether it makes any, and where they are exported.

The standard environment variables of OpenTelemetry decide (OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER with `otlp`, `file`
and `none`, OTEL_EXPORTER_OTLP_…, OTEL_BSP_…, OTEL_RESOURCE_ATTRIBUTES): to a collector where an endpoint is named, else
to files in the data folder.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote

import structlog

from services.common.clock import epoch_ns
from services.common.config import Settings
from services.common.disk import must_give_way, room
from services.common.release import RELEASE
from services.common.telemetry import conventions as c
from services.common.telemetry.export import Exporter, ExportQueue
from services.common.telemetry.span import Span, Value
from services.common.telemetry.span_files import SpanFiles

log = structlog.get_logger()

_CAPACITY, _BATCH, _DELAY_MS = 16384, 512, 1000
UNKNOWN_EXPORTER = "set it to one of them, or not at all"
_LAST_SPANS = 2.0  # seconds that a stopping process gives its exporter
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Tracer:
    """One for each process. `on` is False where spans are not exported: then callers begin none."""

    def __init__(self, queue: ExportQueue | None = None) -> None:
        self.on = queue is not None
        self.busy = asyncio.Event()
        """Set with every span that ends, for `status.report`."""
        self.untraced = 0
        """Sampled messages that were traced no further, because too many were under way."""
        self._queue = queue

    @classmethod
    def from_environment(cls, settings: Settings, service: str, instance: str) -> Tracer:
        """`service` is gateway, queue, …; `instance` is one run of one process."""
        target = _target()
        if target == "none":
            return cls()
        resource = resource_of(service, instance, RELEASE)

        def create() -> Exporter:
            if target == "otlp":
                from services.common.telemetry.otlp import OtlpExporter  # noqa: PLC0415 - brings the SDK with it

                return OtlpExporter(resource, RELEASE)
            return _files(settings, resource, instance, RELEASE)

        return cls(_queue(create))

    @property
    def counts(self) -> dict[str, int]:
        """Counts of spans: ended, exported, dropped; of messages: untraced."""
        queue = self._queue
        if queue is None:
            return {"ended": 0, "exported": 0, "dropped": 0, "untraced": self.untraced}
        return {
            "ended": queue.ended,
            "exported": queue.exported,
            "dropped": queue.dropped,
            "untraced": self.untraced,
        }

    def end(self, span: Span, end_ns: int = 0) -> None:
        """Ends a span, now unless `end_ns` is given."""
        span.end_ns = max(end_ns or epoch_ns(), span.start_ns)
        if self._queue:
            self._queue.add(span)
            self.busy.set()

    def stop(self) -> None:
        """Exports what is left, for a time that a stopping process can bear."""
        if self._queue:
            self._queue.stop(_LAST_SPANS)


OFF = Tracer()


def _target() -> str:
    """otlp, file or none."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "none"
    wanted = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if wanted in {"otlp", "file", "none"}:
        return wanted
    if wanted:
        log.warning(
            "OTEL_TRACES_EXPORTER is none of otlp, file, none, and is ignored", value=wanted, do=UNKNOWN_EXPORTER
        )
    return "otlp" if any(os.environ.get(name) for name in _ENDPOINTS) else "file"


def _queue(create: Callable[[], Exporter]) -> ExportQueue:
    capacity = _number("OTEL_BSP_MAX_QUEUE_SIZE", _CAPACITY)
    batch = _number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", _BATCH)
    delay = _number("OTEL_BSP_SCHEDULE_DELAY", _DELAY_MS)
    return ExportQueue(create, capacity, min(batch, capacity), delay / 1000)


def _files(settings: Settings, resource: Mapping[str, Value], instance: str, version: str) -> SpanFiles:
    return SpanFiles(
        settings.spans_folder,
        re.sub(r"[^\w.-]", "_", instance),
        resource,
        version,
        largest=settings.spans_file_size,
        keep_bytes=settings.spans_keep_bytes,
        keep_days=settings.spans_keep_days,
        must_give_way=lambda: must_give_way(settings.disk_reserve, room(settings.spans_folder)),
    )


def resource_of(service: str, instance: str, version: str) -> dict[str, Value]:
    """OTEL_RESOURCE_ATTRIBUTES, except for what only the service itself can know."""
    resource: dict[str, Value] = {}
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, equals, value = pair.partition("=")
        if equals and key.strip():
            resource[key.strip()] = unquote(value.strip())
    return {
        **resource,
        c.SERVICE_NAME: f"hopline-{service}",
        c.SERVICE_INSTANCE: instance,
        c.SERVICE_VERSION: version,
    }


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    return int(text) if text.isdigit() and int(text) else default
