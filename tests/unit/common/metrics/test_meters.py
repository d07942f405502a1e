from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from errno import EMFILE
from pathlib import Path

import pytest

from services.common.metrics.histogram import Histogram
from services.common.metrics.instrument import counter, gauge, histogram
from services.common.metrics.meters import AT_ONCE, Meters, family
from services.common.metrics.process import measure_process
from services.common.metrics.serving import collected
from services.rpc import metrics_pb2 as pb

THINGS = counter("hopline.things", "{thing}", "Things.", "kind")
WAIT = histogram("hopline.wait", "s", "How long.", (0.1, 1.0))


def test_buckets() -> None:
    """A value that is a bound falls into its bucket, one above all of them into the last."""
    found = Histogram((0.1, 1.0))
    for value in (0.0, 0.1, 0.1001, 1.0, 7.0):
        found.observe(value)
    assert (found.buckets, found.count) == ([2, 2, 1], 5)
    assert found.total == pytest.approx(8.2001)


def test_counters_begin_at_zero() -> None:
    """A counter tells 0 of what it is known to count, before it has counted any."""
    meters = Meters("queue", "queue-1")
    values = meters.counter(THINGS, ("a",), ("b",))
    values["b",] += 2
    [(_, samples, _)] = meters.measured()
    assert samples == [(("a",), 0), (("b",), 2)]


def test_families() -> None:
    """On the wire a family has one value for each sample, and the labels of all of them in one column."""
    meters = Meters("queue", "queue-1")
    meters.read(THINGS, lambda: [(("a",), 1), (("b",), 2)])
    waits = meters.histograms(WAIT)
    waits[()] = Histogram(WAIT.bounds)
    waits[()].observe(0.5)
    things, wait = map(family, meters.measured())
    assert (things.name, things.kind, list(things.labels)) == ("hopline_things_total", pb.COUNTER, ["kind"])
    assert (list(things.label_values), list(things.values)) == (["a", "b"], [1, 2])
    assert (list(wait.values), list(wait.bounds), list(wait.buckets)) == ([0.5], [0.1, 1.0], [0, 1, 0])


async def test_portions() -> None:
    """Ten thousand samples are read some hundred at a time, and other tasks run in between."""
    meters, turns = Meters("queue", "queue-1"), 0
    meters.read(THINGS, lambda: ((("",), number) for number in range(10_000)))
    values: list[float] = []
    async for said in collected(meters, per_object=False):
        turns += 1
        assert sum(len(each.values) for each in said.families) <= 2 * AT_ONCE
        values += [value for each in said.families for value in each.values]
    assert values == list(range(10_000))
    assert turns >= 10_000 // (2 * AT_ONCE)


async def test_what_is_for_single_objects() -> None:
    """Single objects are told only to callers that ask for them; a survey runs before either."""
    meters, surveyed = Meters("queue", "queue-1"), []
    each = replace(gauge("hopline.queue.things", "{thing}", "Things of a queue.", "queue"), per_object=True)

    async def survey() -> None:
        surveyed.append(True)

    meters.surveys.append(survey)
    meters.read(each, lambda: [(("q",), float(len(surveyed)))])
    for per_object in (False, True):
        told = [values async for said in collected(meters, per_object=per_object) for values in said.families]
        assert bool(told) is per_object
    assert list(told[0].values) == [2]


async def test_what_cannot_be_read() -> None:
    """Is missing, and hides nothing else: neither the survey before it nor what is read after it."""
    meters = Meters("queue", "queue-1")

    async def fails() -> None:
        raise OSError("away")

    def breaks_off() -> Iterator[tuple[tuple[str, ...], float]]:
        raise OSError("away")
        yield

    meters.surveys.append(fails)
    meters.number(gauge("hopline.ratio", "", "What is 0."), lambda: 1 / 0)
    meters.read(gauge("hopline.parts", "", "Some."), breaks_off)
    meters.read(THINGS, lambda: [(("a",), 1)])
    told = [family.name async for said in collected(meters, per_object=False) for family in said.families]
    assert told == ["hopline_things_total"]


def test_no_file_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """To count those that are open takes one more: then all are, which the alert on them has to see."""

    def none_left(_: Path) -> Iterator[Path]:
        raise OSError(EMFILE, "Too many open files")

    meters = Meters("queue", "queue-1")
    measure_process(meters)
    monkeypatch.setattr(Path, "iterdir", none_left)
    told = {instrument.prometheus: samples[0][1] for instrument, samples, _ in meters.measured()}
    assert told["process_open_fds"] == told["process_max_fds"] > 0


def test_what_the_system_says() -> None:
    """A process tells its processor time, memory and files, and none of them is 0."""
    meters = Meters("queue", "queue-1")
    measure_process(meters)
    told = {instrument.prometheus: samples[0][1] for instrument, samples, _ in meters.measured()}
    assert set(told) == {
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
    }
    assert all(value > 0 for value in told.values())


async def test_some_instruments_alone() -> None:
    """Nobody reads the others, nor tells them."""
    meters = Meters("queue", "queue-1")
    meters.read(THINGS, lambda: [(("a",), 3)])
    meters.read(replace(THINGS, name="hopline.others"), lambda: pytest.fail("it is read"))
    meters.histogram(WAIT)
    names = {THINGS.prometheus}
    told = [family.name async for said in collected(meters, per_object=True, names=names) for family in said.families]
    assert told == [THINGS.prometheus]
