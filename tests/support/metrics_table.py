"""The tables of docs/metrics.md, made from the catalogue: `python -m tests.support.metrics_table` prints them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from services.common.metrics.catalogue import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.common.metrics.instrument import Instrument

_HEAD = "| Prometheus | OpenTelemetry, unit | kind | labels | |\n|---|---|---|---|---|"


def table(instruments: Iterable[Instrument]) -> str:
    """Of one section."""
    return "\n".join((_HEAD, *map(_row, instruments)))


def _row(each: Instrument) -> str:
    labels = " ".join(f"`{label}`" for label in each.prometheus_labels)
    unit = f" {each.unit}" if each.unit else ""
    return f"| `{each.prometheus}` | `{each.name}`{unit} | {each.kind.value} | {labels} | {each.help} |"


if __name__ == "__main__":
    for title, instruments in SECTIONS:
        sys.stdout.write(f"## {title}\n\n{table(instruments)}\n\n")
