"""Metrics of the whole stack, sent to a collector."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.support.collector import collector
from tests.support.stack import running_stack, wait_until

SERVICES = {f"hopline-{service}" for service in ("gateway", "router", "queue", "store", "mgmt")}


def test_every_service_sends_its_metrics(tmp_path: Path) -> None:
    """Where a collector is named, by the standard variable; none of what they have is refused on the way."""
    with collector() as (url, taken):
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRIC_EXPORT_INTERVAL": "200"}
        with running_stack(tmp_path / "data", settings) as stack:
            wait_until(lambda: _services(taken) >= SERVICES, 30, "metrics of all services")
            assert "metrics are not taken" not in stack.log.read_text()


def _services(taken: list[tuple[str, bytes]]) -> set[str]:
    found = set[str]()
    for path, body in list(taken):
        if path == "/v1/metrics":
            for each in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                found |= {said.value.string_value for said in each.resource.attributes if said.key == "service.name"}
    return found
