"""One thing that is measured: its names, its unit, what tells its samples apart. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """How values behave."""

    GAUGE = "gauge"
    """It is as it is now."""
    COUNTER = "counter"
    """It only grows, from 0 at the start of its process."""
    HISTOGRAM = "histogram"
    """How many of what was observed fell into each of its buckets, which only grow as well."""


_UNITS: Final = {"s": "seconds", "By": "bytes"}


@dataclass(frozen=True, slots=True)
class Instrument:
    """`name` as OpenTelemetry has it, `unit` in UCUM's words as its conventions want them: `s`, `By`, `{message}`."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram's buckets: upper ones, inclusive, ascending."""
    prometheus_name: str = ""
    """Where everybody calls it otherwise than its name makes it."""
    per_object: bool = False
    """Told only of whoever asks for each single object."""

    @property
    def prometheus(self) -> str:
        """Its name there, as OpenTelemetry's own exporter makes it: the unit at its end, and of counters `_total`."""
        if self.prometheus_name:
            return self.prometheus_name
        name, unit = self.name.replace(".", "_"), _UNITS.get(self.unit, "")
        if unit and not name.endswith(unit):
            name += f"_{unit}"
        return f"{name}_total" if self.kind is Kind.COUNTER else name

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """Their names there."""
        return tuple(label.replace(".", "_") for label in self.labels)


def gauge(name: str, unit: str, help: str, *labels: str, **more: str) -> Instrument:  # noqa: A002 - Prometheus's word
    """Of what is now."""
    return Instrument(name, Kind.GAUGE, unit, help, labels, prometheus_name=more.get("prometheus", ""))


def counter(name: str, unit: str, help: str, *labels: str, **more: str) -> Instrument:  # noqa: A002 - as above
    """Of what happened."""
    return Instrument(name, Kind.COUNTER, unit, help, labels, prometheus_name=more.get("prometheus", ""))


def histogram(name: str, unit: str, help: str, bounds: tuple[float, ...], *labels: str) -> Instrument:  # noqa: A002
    """Of how long something took, or how large it was."""
    return Instrument(name, Kind.HISTOGRAM, unit, help, labels, bounds)
