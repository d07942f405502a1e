"""What was gathered as Prometheus reads it: by its own client library, in the format that the scraper asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from services.common.metrics.catalogue.mgmt import INFO, UP
from services.common.release import RELEASE
from services.mgmt.metrics.gather import ProcessMetrics, labels_of, samples_of
from services.rpc import metrics_pb2 as pb

_WHO: Final = ("service", "process")
_PLAIN: Final[dict[int, type[CounterMetricFamily | GaugeMetricFamily]]] = {
    pb.GAUGE: GaugeMetricFamily,
    pb.COUNTER: CounterMetricFamily,
}


def exposition(told: list[ProcessMetrics], accepts: str, names: Collection[str] = ()) -> tuple[bytes, str]:
    """The page and its content type, for an Accept header; of these names, if there are any.

    Takes as long as there are samples: in a thread.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered(told, names))
    encode, content_type = choose_encoder(accepts)
    return encode(registry), content_type


class _Gathered(Collector):
    def __init__(self, told: list[ProcessMetrics], names: Collection[str]) -> None:
        self._told = told
        self._names = names

    def collect(self) -> Iterator[Metric]:
        """A family once, with the samples of every process."""
        yield from _about(self._told)
        by_name: defaultdict[str, list[tuple[ProcessMetrics, pb.Family]]] = defaultdict(list)
        for told in self._told:
            for family in told.families:
                if not self._names or family.name in self._names:
                    by_name[family.name].append((told, family))
        for parts in by_name.values():
            yield _metric(parts)


def _about(told: Iterable[ProcessMetrics]) -> Iterator[Metric]:
    up = GaugeMetricFamily(UP.prometheus, UP.help, labels=_WHO)
    for each in told:
        up.add_metric((each.service, each.process), each.answered)
    yield up
    info = GaugeMetricFamily(INFO.prometheus, INFO.help, labels=INFO.prometheus_labels)
    info.add_metric((RELEASE,), 1)
    yield info


def _metric(parts: list[tuple[ProcessMetrics, pb.Family]]) -> Metric:
    first = parts[0][1]
    labels = (*_WHO, *first.labels)
    if first.kind == pb.HISTOGRAM:
        histogram = HistogramMetricFamily(first.name, first.help, labels=labels)
        for told, family in parts:
            _add_histograms(histogram, told, family)
        return histogram
    metric: CounterMetricFamily | GaugeMetricFamily = _PLAIN[first.kind](first.name, first.help, labels=labels)
    for told, family in parts:
        for its, value in samples_of(family):
            metric.add_metric((told.service, told.process, *its), value)
    return metric


def _add_histograms(metric: HistogramMetricFamily, told: ProcessMetrics, family: pb.Family) -> None:
    size = len(family.bounds) + 1
    names = [*(str(bound) for bound in family.bounds), "+Inf"]
    for index, (its, total) in enumerate(zip(labels_of(family), family.values, strict=True)):
        buckets = accumulate(family.buckets[index * size : (index + 1) * size])
        metric.add_metric((told.service, told.process, *its), list(zip(names, buckets, strict=True)), total)
