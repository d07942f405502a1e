"""All metrics of one process. The message path adds to a number now and then; the rest is read on request.

Nothing is global: tests run several services in one process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, NamedTuple

from services.common.containment import contained
from services.common.metrics.histogram import Histogram
from services.common.metrics.instrument import Instrument, Kind
from services.rpc import metrics_pb2 as pb

Labels = tuple[str, ...]
Samples = Iterable[tuple[Labels, float]]

AT_ONCE: Final = 250
"""Samples in one turn of the loop."""

_KINDS = {Kind.GAUGE: pb.GAUGE, Kind.COUNTER: pb.COUNTER, Kind.HISTOGRAM: pb.HISTOGRAM}


class Measured(NamedTuple):
    """Some samples of an instrument, or histograms if it is a histogram."""

    instrument: Instrument
    samples: list[tuple[Labels, float]]
    histograms: list[tuple[Labels, Histogram]]


class Meters:
    """`service` is gateway, queue, …; `process` names one run of one process, and is never used again."""

    def __init__(self, service: str, process: str) -> None:
        self.service = service
        self.process = process
        self.surveys: list[Callable[[], Awaitable[None]]] = []
        """Run before anything is read, for what takes more than one turn of the loop."""
        self._readers: list[tuple[Instrument, Callable[[], Samples]]] = []
        self._histograms: list[tuple[Instrument, Mapping[Labels, Histogram]]] = []

    def read(self, instrument: Instrument, read: Callable[[], Samples]) -> None:
        """`read` gives the present samples; it may give them one by one, with turns of the loop between."""
        self._readers.append((instrument, read))

    def number(self, instrument: Instrument, read: Callable[[], float], *labels: str) -> None:
        """As `read`, for one number."""
        self._readers.append((instrument, lambda: ((labels, read()),)))

    def counter(self, instrument: Instrument, *begin: Labels) -> defaultdict[Labels, float]:
        """Values for the caller to add to. Labels in `begin` are shown from the start: 0 is not the same as unknown."""
        values: defaultdict[Labels, float] = defaultdict(float, dict.fromkeys(begin, 0.0))
        self._readers.append((instrument, lambda: list(values.items())))
        return values

    def histogram(self, instrument: Instrument) -> Histogram:
        """A histogram without labels."""
        found = Histogram(instrument.bounds)
        self._histograms.append((instrument, {(): found}))
        return found

    def histograms(self, instrument: Instrument) -> dict[Labels, Histogram]:
        """Histograms by labels; the caller adds those that are missing."""
        found: dict[Labels, Histogram] = {}
        self._histograms.append((instrument, found))
        return found

    async def survey(self) -> None:
        """Must be awaited before `measured`. What one of them cannot find out stays as it was."""
        for survey in self.surveys:
            try:
                await survey()
            except Exception as fault:  # noqa: BLE001 - the others find out theirs
                contained("surveying for metrics", fault)

    def measured(self, *, per_object: bool = False, names: Collection[str] = ()) -> Iterator[Measured]:
        """All metrics, or those, in portions; each may have several. One that cannot be read hides no other."""
        for instrument, read in self._readers:
            if (instrument.per_object and not per_object) or (names and instrument.prometheus not in names):
                continue
            try:
                yield from _portions(instrument, read)
            except Exception as fault:  # noqa: BLE001 - the others are read
                contained("reading a metric", fault, metric=instrument.name)
        for instrument, histograms in self._histograms:
            if histograms and (not names or instrument.prometheus in names):
                yield Measured(instrument, [], list(histograms.items()))


def _portions(instrument: Instrument, read: Callable[[], Samples]) -> Iterator[Measured]:
    left = iter(read())
    for first in left:  # an instrument without samples gives no portion
        yield Measured(instrument, [first, *islice(left, AT_ONCE - 1)], [])


def family(measured: Measured) -> pb.Family:
    """An instrument's portion as a gRPC message."""
    instrument, samples, histograms = measured
    said = pb.Family(
        name=instrument.prometheus,
        kind=_KINDS[instrument.kind],
        help=instrument.help,
        labels=instrument.prometheus_labels,
        label_values=chain.from_iterable([labels for labels, _ in (*samples, *histograms)]),
        values=[*(value for _, value in samples), *(each.total for _, each in histograms)],
        bounds=instrument.bounds,
    )
    said.buckets.extend(chain.from_iterable([each.buckets for _, each in histograms]))
    return said
