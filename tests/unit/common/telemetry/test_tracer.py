from __future__ import annotations

import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from services.common.config import Settings
from services.common.telemetry import conventions as c
from services.common.telemetry.context import new_root
from services.common.telemetry.span import Event, Span, SpanLink
from services.common.telemetry.tracer import Tracer
from tests.support.collector import collector
from tests.support.stack import wait_until


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def tracer(folder: Path) -> Tracer:
    return Tracer.from_environment(Settings(data=folder), "gateway", "gateway-7")


def full_span() -> Span:
    parent = new_root()
    span = Span("receive ex", c.Kind.CONSUMER, parent.child(), parent, {"n": 1, "text": "t"})
    span.links.append(SpanLink(new_root(), {"l": 2}))
    span.events.append(Event("q enqueue", 5, {"e": 3}))
    span.fail("overflow")
    return span


def test_files(tmp_path: Path) -> None:
    """Without an endpoint spans go to the data folder, and no SDK is needed for it."""
    writer = tracer(tmp_path)
    writer.end(full_span())
    writer.stop()
    [path] = (tmp_path / "spans").glob("date=*/gateway-7-0001.jsonl")
    assert b'"hopline-gateway"' in path.read_bytes()
    assert writer.counts == {"ended": 1, "exported": 1, "dropped": 0, "untraced": 0}


@pytest.mark.parametrize(("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")])
def test_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """The standard variables turn spans off."""
    monkeypatch.setenv(name, value)
    writer = tracer(tmp_path)
    assert not writer.on
    writer.end(full_span())
    writer.stop()
    assert not (tmp_path / "spans").exists()


def test_resource(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_RESOURCE_ATTRIBUTES adds to what a service says of itself, and takes nothing from it."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=a%20b,service.name=other,broken")
    writer = tracer(tmp_path)
    writer.end(full_span())
    writer.stop()
    [path] = (tmp_path / "spans").glob("date=*/*.jsonl")
    written = path.read_text()
    assert '"a b"' in written
    assert "other" not in written
    assert '{"key":"service.instance.id","value":{"stringValue":"gateway-7"}}' in written


def test_otlp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an endpoint spans go to it as OTLP, whole, and not to files."""
    with collector() as (url, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
        writer, span = tracer(tmp_path), full_span()
        writer.end(span)
        wait_until(lambda: writer.counts["exported"], 30, "export")  # a stop would wait for it for a moment
        writer.stop()
    assert "opentelemetry.sdk.trace" in sys.modules
    assert not (tmp_path / "spans").exists()
    assert writer.counts["exported"] == 1
    [(path, body)] = taken
    assert path == "/v1/traces"
    [of_resource] = ExportTraceServiceRequest.FromString(body).resource_spans
    [of_scope] = of_resource.scope_spans
    [sent] = of_scope.spans
    assert of_scope.schema_url == c.SCHEMA_URL
    assert sent.trace_id == span.context.trace_id.to_bytes(16, "big")
    assert sent.parent_span_id == span.parent.span_id.to_bytes(8, "big")
    assert (sent.name, sent.kind, sent.status.code) == ("receive ex", 5, 2)
    assert [event.name for event in sent.events] == ["q enqueue"]
    assert sent.links[0].span_id == span.links[0].context.span_id.to_bytes(8, "big")


def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a collector does not take is counted as dropped."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    writer = tracer(tmp_path)
    writer.end(full_span())
    wait_until(lambda: writer.counts["dropped"], 30, "end of it")
    writer.stop()
    assert writer.counts["dropped"] == 1
