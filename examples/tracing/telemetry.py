"""OpenTelemetry as any application sets it up."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.instrumentation.pika import PikaInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

SPANS = Path(__file__).parent / "spans"


def start(service: str) -> trace.Tracer:
    """Instruments pika; call `stop` before the program ends."""
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(_exporter(service)))
    trace.set_tracer_provider(provider)
    PikaInstrumentor().instrument()
    return provider.get_tracer(service)


def stop() -> None:
    """Exports what is left."""
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    provider.shutdown()


def _exporter(service: str) -> SpanExporter:
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - or the other

        return OTLPSpanExporter()
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter  # noqa: PLC0415 - as above

    folder = Path(os.environ.get("EXAMPLE_SPANS", SPANS))
    folder.mkdir(parents=True, exist_ok=True)
    return FileSpanExporter(folder / f"{service}-{os.getpid()}.jsonl")
