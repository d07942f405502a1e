"""One thing that is measured: its names, its unit, the labels of its samples. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """How an instrument's values behave."""

    GAUGE = "gauge"
    """The present value, which may rise and fall."""
    COUNTER = "counter"
    """Only grows, from 0 at the start of its process."""
    HISTOGRAM = "histogram"
    """Counts of observed values by bucket, which only grow as well."""


_UNITS: Final = {"s": "seconds", "By": "bytes"}


@dataclass(frozen=True, slots=True)
class Instrument:
    """`name` as in OpenTelemetry, `unit` in UCUM's notation as its conventions want it: `s`, `By`, `{message}`."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets, inclusive, ascending."""
    prometheus_name: str = ""
    """Its name in Prometheus where the usual name there is not the one derived from `name`."""
    per_object: bool = False
    """Only shown to requests for metrics per object."""

    @property
    def prometheus(self) -> str:
        """Its name in Prometheus, as OpenTelemetry's own exporter makes it: with the unit, and `_total` of counters."""
        if self.prometheus_name:
            return self.prometheus_name
        name, unit = self.name.replace(".", "_"), _UNITS.get(self.unit, "")
        if unit and not name.endswith(unit):
            name += f"_{unit}"
        return f"{name}_total" if self.kind is Kind.COUNTER else name

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """The labels' names in Prometheus."""
        return tuple(label.replace(".", "_") for label in self.labels)


def gauge(name: str, unit: str, help: str, *labels: str, **more: str) -> Instrument:  # noqa: A002 - Prometheus's word
    """For a present value."""
    return Instrument(name, Kind.GAUGE, unit, help, labels, prometheus_name=more.get("prometheus", ""))


def counter(name: str, unit: str, help: str, *labels: str, **more: str) -> Instrument:  # noqa: A002 - as above
    """For a count of events."""
    return Instrument(name, Kind.COUNTER, unit, help, labels, prometheus_name=more.get("prometheus", ""))


def histogram(name: str, unit: str, help: str, bounds: tuple[float, ...], *labels: str) -> Instrument:  # noqa: A002
    """For durations or sizes."""
    return Instrument(name, Kind.HISTOGRAM, unit, help, labels, bounds)
