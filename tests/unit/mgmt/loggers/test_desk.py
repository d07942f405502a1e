"""Loggers as records say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.store import StoreClient
from services.common.clock import epoch_ns
from services.mgmt.loggers import desk as desks
from services.mgmt.loggers.desk import LoggerDesk
from services.mgmt.loggers.kind import Sink, now_us
from services.mgmt.loggers.memory import Memory, MemorySink
from services.mgmt.loggers.records import LOGGER_KIND, RULE_KIND, LoggerRecord, Place, RuleRecord, record_of
from services.rpc.logs_pb2 import Line
from services.rpc.store_pb2 import Record

PLACE = Place("/", "mine")


class _Told(MemorySink):
    """Which breaks with the first line."""

    broken = False
    closed = False

    def take(self, lines: Sequence[Line]) -> None:
        if self.broken:
            raise RuntimeError("a fault")
        super().take(lines)

    async def close(self) -> None:
        self.closed = True


class _Kind(Memory):
    """See LoggerKind."""

    async def open(self, said: Any, folder: Path, former: Sink | None) -> Sink:
        return _Told(10)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoggerDesk:
    monkeypatch.setattr(desks, "kind_of", lambda *_: _Kind())
    return LoggerDesk(StoreClient("unix:nowhere"), tmp_path)


async def _become(desk: LoggerDesk, *records: Record) -> _Told:
    desks._apply(desk._records, records)
    await desk._become()
    its = desk.at(PLACE)
    assert its
    assert isinstance(its.sink, _Told)
    return its.sink


def _logger(host: str) -> Record:
    return record_of(LOGGER_KIND, PLACE.key, LoggerRecord(type="Memory", attributes={}, host=host))


def _rule(host: str) -> Record:
    rule = RuleRecord(logger="ROOT", level="INFO", host=host)
    return record_of(RULE_KIND, PLACE.key_of("all"), rule)


def _texts(sink: MemorySink) -> list[str]:
    return [line.text for _, line in sink.lines]


def _line(text: str) -> Line:
    return Line(level="INFO", logger="x", text=text, time_us=1, virtual_host="/")


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_rules_of_a_virtual_host_that_is_gone(desk: LoggerDesk) -> None:
    """They count for no logger of the next of its name."""
    sink = await _become(desk, _logger("2"), _rule("1"))
    desk._take([_line("a")])
    assert not _texts(sink)
    sink = await _become(desk, _rule("2"))
    desk._take([_line("b")])
    assert _texts(sink) == ["a", "b"]  # it begins with what led to it


async def test_rules_that_come_back(desk: LoggerDesk) -> None:
    """What came while there were some is not told again by the next; what came between is."""
    sink = await _become(desk, _logger("1"), _rule("1"))
    desk._take([_line("a")])
    await _become(desk, Record(kind=RULE_KIND, key=PLACE.key_of("all"), deleted=True))
    desk._take([_line("b")])
    await _become(desk, _rule("1"))
    assert _texts(sink) == ["a", "b"]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_differs(desk: LoggerDesk, hours: int) -> None:
    """A logger takes what was logged since it began, whatever its machine's clock says of the time."""
    sink = await _become(desk, _logger("1"), _rule("1"))
    sink.since_us = now_us()
    time_us = epoch_ns() // 1000 + hours * 3600 * 10**6
    for text, known_us in (("before", sink.since_us - 1), ("then", sink.since_us)):
        desk._take([Line(level="INFO", logger="x", text=text, time_us=time_us, known_us=known_us, virtual_host="/")])
    assert _texts(sink) == ["then"]


async def test_a_sink_that_breaks(desk: LoggerDesk) -> None:
    """What it has open is let go, and why it takes nothing is told."""
    sink = await _become(desk, _logger("1"), _rule("1"))
    sink.broken = True
    desk._take([_line("a")])
    await _until(lambda: sink.closed)
    its = desk.at(PLACE)
    assert its
    assert its.trouble == "a fault"


async def test_a_disk_that_hangs(desk: LoggerDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens a logger on it says so, and the others take lines."""

    class Hanging(_Kind):
        async def open(self, said: Any, folder: Path, former: Sink | None) -> Sink:
            await asyncio.Event().wait()
            return await super().open(said, folder, former)

    kinds = {"hangs": Hanging(), PLACE.name: _Kind()}
    monkeypatch.setattr(desks, "kind_of", lambda place, _type: kinds[place.name])
    monkeypatch.setattr(desks, "_PATIENCE", 0.01)
    other = Place("/", "hangs")
    record = record_of(LOGGER_KIND, other.key, LoggerRecord(type="Memory", attributes={}, host="1"))
    async with asyncio.timeout(60):
        sink = await _become(desk, record, _logger("1"), _rule("1"))
    desk._take([_line("a")])
    assert _texts(sink) == ["a"]
    its = desk.at(other)
    assert its
    assert its.trouble.startswith("its disk does not answer")
