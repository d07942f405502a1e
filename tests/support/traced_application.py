"""An application with an OpenTelemetry SDK of its own."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.support.span_files import Seen, of_application


class Application:
    """`tracer` is for what it does, `spans` is what came of it."""

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self.provider.get_tracer("application")

    def spans(self) -> list[Seen]:
        return of_application(self._memory.get_finished_spans())
