from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator

import pytest
from rich.console import Console

from services.cli import events
from services.common.bus.event import Event
from services.common.bus.facts import Facts, Gap, LeaseAcquired, VirtualHostCreated
from services.common.bus.follow import BusMessage
from services.common.bus.subject import ALL, subject_of


def _event(sequence: int, facts: Facts) -> Event:
    return Event(time_ms=0, service="store", instance="store-1", origin=0, sequence=sequence, facts=facts)


_HOST = VirtualHostCreated(virtual_host="[bold]")


def test_line() -> None:
    """A line has the event, its object and its user; nothing in a name is taken for markup, nothing empty is shown."""
    lease = LeaseAcquired(lease="router", partition=None, role="router", member="m", epoch=3, address="")
    assert events.line(_event(1, lease)).plain[14:] == (
        "lease.acquired        lease=router role=router member=m epoch=3  store-1"
    )
    assert "virtual_host=[bold]" in events.line(_event(1, _HOST)).plain
    assert "7 events may not have arrived" in events.line(_event(8, Gap(first=1, last=7, count=7))).plain


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What a bus tells; it ends then, as no real one does."""
    told: list[Event] = []

    async def follow(_address: str, _subject: str) -> AsyncIterator[BusMessage]:
        for event in told:
            yield BusMessage(subject_of(event.facts), event.to_json())
        yield BusMessage("hopline.event._.queue.painted", b'{"kind": "queue.painted"}')

    monkeypatch.setattr(events, "follow", follow)
    return told


def test_what_is_missing(told: list[Event]) -> None:
    """Events that did not come are mentioned, and kinds that are not known shown as they are."""
    told += [_event(1, _HOST), _event(4, _HOST)]
    written = io.StringIO()
    asyncio.run(events.show("", ALL, Console(file=written)))
    lines = written.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[1] == "2 events of store-1 did not arrive here"
    assert lines[3] == '{"kind": "queue.painted"}'


def test_json(told: list[Event]) -> None:
    """With --json each line is an event, however long."""
    told.append(_event(1, VirtualHostCreated(virtual_host="x" * 500)))
    written = io.StringIO()
    asyncio.run(events.show_json("", ALL, Console(file=written)))
    assert json.loads(written.getvalue().splitlines()[0])["facts"]["virtual_host"] == "x" * 500
