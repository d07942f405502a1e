"""Metrics to a collector: OpenTelemetry's own OTLP exporters, set up by the standard environment variables.

Imported only where an endpoint is named: it brings the SDK with it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from services.common.metrics.histogram import Histogram
from services.common.metrics.instrument import Instrument, Kind
from services.common.metrics.meters import Labels, Measured
from services.common.telemetry import conventions as c
from services.common.telemetry.span import Value

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_NUMBERS = frozenset({"http.response.status_code"})
"""Attributes that the conventions have as numbers; labels of Prometheus are texts."""


class NotTaken(Exception):
    """The collector refused metrics, or could not be reached for as long as the exporter tries."""


class OtlpExporter:
    """Exports one process's metrics, counted since `began_ns`. Called from one thread at a time, which it may block."""

    def __init__(self, resource: Mapping[str, Value], version: str, began_ns: int) -> None:
        self._exporter = _create()
        self._resource = Resource(dict(resource), c.SCHEMA_URL)
        self._scope = InstrumentationScope(c.SCOPE, version, c.SCHEMA_URL)
        self._began_ns = began_ns

    def export(self, measured: Sequence[Measured], time_ns: int) -> None:
        """Raises NotTaken."""
        found = ScopeMetrics(self._scope, list(_metrics(measured, self._began_ns, time_ns)), c.SCHEMA_URL)
        data = MetricsData([ResourceMetrics(self._resource, [found], c.SCHEMA_URL)])
        if self._exporter.export(data) is not MetricExportResult.SUCCESS:
            raise NotTaken("the OTLP endpoint did not take metrics; see OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")

    def close(self) -> None:
        """Ends the connection, and any attempt under way."""
        self._exporter.shutdown()


def _metrics(measured: Iterable[Measured], began_ns: int, time_ns: int) -> Iterable[Metric]:
    numbers: defaultdict[Instrument, list[NumberDataPoint]] = defaultdict(list)
    histograms: defaultdict[Instrument, list[HistogramDataPoint]] = defaultdict(list)
    for instrument, samples, found in measured:
        begin = 0 if instrument.kind is Kind.GAUGE else began_ns
        for labels, value in samples:
            # A truth value is a number here, but none to Protobuf, and one that it refuses costs a process all metrics.
            number = int(value) if isinstance(value, bool) else value
            numbers[instrument].append(NumberDataPoint(_attributes(instrument, labels), begin, time_ns, number))
        for labels, histogram in found:
            attributes = _attributes(instrument, labels)
            histograms[instrument].append(_of_histogram(attributes, histogram, began_ns, time_ns))
    for instrument, points in numbers.items():
        data = Gauge(points) if instrument.kind is Kind.GAUGE else Sum(points, _CUMULATIVE, is_monotonic=True)
        yield Metric(instrument.name, instrument.help, instrument.unit, data)
    for instrument, buckets in histograms.items():
        yield Metric(instrument.name, instrument.help, instrument.unit, HistogramData(buckets, _CUMULATIVE))


def _attributes(instrument: Instrument, labels: Labels) -> dict[str, str | int]:
    named = zip(instrument.labels, labels, strict=True)
    return {name: int(label) if name in _NUMBERS else label for name, label in named}


def _of_histogram(
    attributes: dict[str, str | int], found: Histogram, began_ns: int, time_ns: int
) -> HistogramDataPoint:
    nothing: Any = None  # smallest and largest value are not kept; the wire format lets them be missing
    return HistogramDataPoint(
        attributes, began_ns, time_ns, found.count, found.total, found.buckets, found.bounds, nothing, nothing
    )


def _create() -> MetricExporter:
    """The exporter of the protocol that the environment names; http/protobuf is the specification's default."""
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415 - one of the two is used
            OTLPMetricExporter as OverGrpc,
        )

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - as above
        OTLPMetricExporter as OverHttp,
    )

    return OverHttp()
