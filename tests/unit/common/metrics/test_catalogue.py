from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.common.metrics.catalogue import SECTIONS
from services.common.metrics.instrument import Instrument, Kind, counter, gauge, histogram
from tests.support.metrics_table import table

ROOT = Path(__file__).parents[4]
ALL = [each for _, instruments in SECTIONS for each in instruments]


@pytest.mark.parametrize(
    ("instrument", "name"),
    [
        (counter("hopline.messages.received", "{message}", ""), "hopline_messages_received_total"),
        (counter("hopline.messages.size", "By", ""), "hopline_messages_size_bytes_total"),
        (gauge("hopline.disk.free", "By", ""), "hopline_disk_free_bytes"),
        (gauge("hopline.up", "", ""), "hopline_up"),
        (histogram("http.server.request.duration", "s", "", (1,)), "http_server_request_duration_seconds"),
        (counter("process.cpu.time", "s", "", prometheus="process_cpu_seconds_total"), "process_cpu_seconds_total"),
    ],
)
def test_names_in_prometheus(instrument: Instrument, name: str) -> None:
    """A name of OpenTelemetry becomes one of Prometheus as its own exporter makes it; some are common ones."""
    assert instrument.prometheus == name


def test_names_are_unique() -> None:
    """No two instruments have the same name, there or there."""
    assert len({each.name for each in ALL}) == len({each.prometheus for each in ALL}) == len(ALL)


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_instruments_are_as_the_conventions_want(each: Instrument) -> None:
    """Names are lower case and dotted, units are UCUM's, what is said of them is a sentence; bounds ascend."""
    assert re.fullmatch(r"[a-z]+(\.[a-z_]+)+", each.name)
    assert re.fullmatch(r"|s|By|\{[a-z]+\}", each.unit)
    assert each.help.endswith(".")
    assert all(re.fullmatch(r"[a-z_.]+", label) for label in each.labels)
    assert not {"service", "process"} & set(each.labels)
    assert bool(each.bounds) is (each.kind is Kind.HISTOGRAM)
    assert list(each.bounds) == sorted(set(each.bounds))


@pytest.mark.parametrize("title", [title for title, _ in SECTIONS])
def test_every_name_is_documented(title: str) -> None:
    """docs/metrics.md has each section, with its metrics: `python -m tests.support.metrics_table` makes it."""
    text = (ROOT / "docs/metrics.md").read_text()
    assert f"\n## {title}\n" in text
    assert table(dict(SECTIONS)[title]) in text
