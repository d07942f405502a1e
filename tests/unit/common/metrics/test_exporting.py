from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
import structlog
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from services.common.clock import epoch_ns
from services.common.metrics.catalogue.messages import QUEUE_READY, READY, SETTLED
from services.common.metrics.catalogue.mgmt import HTTP
from services.common.metrics.catalogue.queues import FLOWING, JOURNAL
from services.common.metrics.exporting import Exporting
from services.common.metrics.histogram import Histogram
from services.common.metrics.meters import Measured, Meters
from tests.support.collector import collector

VARIABLES = ("OTEL_SDK_DISABLED", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_METRIC_EXPORT_INTERVAL")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set."""
    for name in (*VARIABLES, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def meters() -> Meters:
    """Of three messages, of which two are settled, one journal frame, a request over HTTP, and publishers that wait."""
    meters = Meters("queue", "queue-1-a")
    meters.number(READY, lambda: 3)
    meters.number(FLOWING, lambda: True)
    meters.read(SETTLED, lambda: [(("accepted",), 2), (("rejected",), 0)])
    meters.read(QUEUE_READY, lambda: [(("/", "q"), 3)])
    meters.histogram(JOURNAL).observe(0.002)
    meters.histograms(HTTP)["GET", "404"] = Histogram(HTTP.bounds)
    return meters


async def test_otlp(meters: Meters, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an endpoint a process sends its metrics as OTLP: its identity, kinds, units, attributes and buckets."""
    with collector() as (url, taken):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setattr(f"{Exporting.__module__}._LAST_WORDS", 30.0)  # the SDK is imported first
        began = epoch_ns()
        exporting = Exporting(meters)
        exporting.start()
        await exporting.stop()
    [(path, body)] = taken
    assert path == "/v1/metrics"
    [resource] = ExportMetricsServiceRequest.FromString(body).resource_metrics
    who = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert (who["service.name"], who["service.instance.id"]) == ("hopline-queue", "queue-1-a")
    found = {each.name: each for each in resource.scope_metrics[0].metrics}
    assert set(found) == {READY.name, FLOWING.name, SETTLED.name, JOURNAL.name, HTTP.name}
    settled = found[SETTLED.name]
    assert (settled.unit, settled.sum.is_monotonic, settled.sum.aggregation_temporality) == ("{message}", True, 2)
    assert {point.attributes[0].value.string_value: point.as_int for point in settled.sum.data_points} == {
        "accepted": 2,
        "rejected": 0,
    }
    assert began <= settled.sum.data_points[0].start_time_unix_nano <= settled.sum.data_points[0].time_unix_nano
    [point] = found[JOURNAL.name].histogram.data_points
    assert (list(point.explicit_bounds), point.count, point.sum) == (list(JOURNAL.bounds), 1, 0.002)
    assert (list(point.bucket_counts)[2], point.HasField("min"), point.HasField("max")) == (1, False, False)
    assert [each.as_int for each in found[READY.name].gauge.data_points] == [3]
    assert [each.as_int for each in found[FLOWING.name].gauge.data_points] == [1]
    [point] = found[HTTP.name].histogram.data_points
    method, status = point.attributes
    assert (method.value.string_value, status.value.int_value) == ("GET", 404)


class Kept:
    """An exporter that keeps what it is given, or fails."""

    def __init__(self) -> None:
        self.sent: list[Sequence[Measured]] = []
        self.fails = False
        self.closed = False

    def export(self, measured: Sequence[Measured], time_ns: int) -> None:
        if self.fails:
            raise ValueError("no room")
        self.sent.append(measured)

    def close(self) -> None:
        self.closed = True


async def until(condition: object) -> None:
    async with asyncio.timeout(30):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.005)


async def test_again_and_again(meters: Meters, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sent every so often, with single queues where that is wanted; what is not taken is said, and sent on."""
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
    kept = Kept()
    exporting = Exporting(meters, per_object=True, create=lambda: kept)
    exporting.start()
    await until(lambda: len(kept.sent) >= 3)
    assert any(each.instrument is QUEUE_READY for each in kept.sent[0])
    with structlog.testing.capture_logs() as logs:
        kept.fails = True
        await until(lambda: logs)
        kept.fails = False
        sent = len(kept.sent)
        await until(lambda: len(kept.sent) > sent)
    assert logs[0]["event"] == "metrics are not taken"
    await exporting.stop()
    assert kept.closed


@pytest.mark.parametrize(
    "wanted",
    [{}, {"OTEL_METRICS_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_METRICS_EXPORTER": "nowhere"}],
)
async def test_no_exporter_wants_them(meters: Meters, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, str]) -> None:
    """Where no endpoint is named, or the environment says so, nothing is sent, nor read."""
    with collector() as (url, taken):
        if wanted and wanted != {"OTEL_METRICS_EXPORTER": "nowhere"}:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        for name, value in wanted.items():
            monkeypatch.setenv(name, value)
        exporting = Exporting(meters)
        exporting.start()
        await exporting.stop()
    assert taken == []


async def test_a_collector_that_hangs(meters: Meters, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is to stop does not wait for it, nor for the thread; while it hangs it is asked for no more."""
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
    monkeypatch.setattr("services.common.metrics.exporting._LAST_WORDS", 0.05)
    released, asked = threading.Event(), []

    class Hangs(Kept):
        def export(self, measured: Sequence[Measured], time_ns: int) -> None:
            asked.append(threading.current_thread())
            released.wait(60)

    kept = Hangs()
    exporting = Exporting(meters, create=lambda: kept)
    exporting.start()
    await until(lambda: asked)
    await exporting.stop()
    assert [thread.daemon for thread in asked] == [True]
    assert not kept.closed
    released.set()
    asked[0].join(30)
