"""What a stack says at /metrics, as a scraper reads it."""

from __future__ import annotations

import base64
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.metrics_core import Metric

Series = tuple[str, ...]
"""A name, and labels as `key=value`, in their order."""

_WHO = ("service", "process")


def page(port: int, path: str = "/metrics", user: str = "guest:guest") -> str:
    """The text."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


def scrape(port: int, path: str = "/metrics") -> list[Metric]:
    """All families."""
    return list(text_string_to_metric_families(page(port, path)))


def series(families: list[Metric]) -> dict[Series, float]:
    """Each for itself, with whose it is."""
    return {_series(name, labels): value for name, labels, value, _ in _samples(families)}


def sums(families: list[Metric], prefix: str) -> Counter[Series]:
    """Counters and gauges of that prefix over all processes; what is 0 is left out."""
    found: Counter[Series] = Counter()
    for name, labels, value, _ in _samples(families):
        if name.startswith(prefix):
            others = {key: each for key, each in labels.items() if key not in _WHO}
            found[_series(name.removeprefix(prefix).removesuffix("_total"), others)] += int(value)
    return +found


def growing(families: list[Metric]) -> dict[Series, float]:
    """What must never fall."""
    return {
        _series(name, labels): value
        for name, labels, value, kind in _samples(families)
        if kind in {"counter", "histogram"}
    }


def _samples(families: list[Metric]) -> Iterator[tuple[str, Mapping[str, str], float, str]]:
    for family in families:
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value, family.type


def _series(name: str, labels: Mapping[str, str]) -> Series:
    return name, *(f"{key}={value}" for key, value in sorted(labels.items()))
