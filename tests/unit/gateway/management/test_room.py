"""What requests of many clients take, while mgmt does not answer."""

from __future__ import annotations

import asyncio
import gc
import weakref

import structlog

from services.gateway.management.desk import _AT_ONCE
from services.gateway.management.line import BYTES, BYTES_OF_ALL, LARGEST, MOST, MOST_OF_ALL
from tests.support.desked import Desked

_FULL = MOST_OF_ALL // MOST


def _beside(first: Desked, count: int) -> list[Desked]:
    return [Desked(first) for _ in range(count)]


def _returned(desked: Desked) -> int:
    return sum(len(each.indexes) for each in desked.client.back)


async def test_all_lines_have_one_room() -> None:
    """However many clients ask, no more is kept; what is beyond is returned, and the log says so once."""
    first = Desked()
    first.mgmt.may.clear()
    crowd = [first, *_beside(first, _FULL + 4)]
    with structlog.testing.capture_logs() as logged:
        for each in crowd:
            await each.asks(*range(MOST), mandatory=True)
    assert sum(map(_returned, crowd)) == MOST * len(crowd) - MOST_OF_ALL
    assert [line["log_level"] for line in logged] == ["warning"]
    first.mgmt.may.set()
    await first.done()
    assert len(first.mgmt.asked) == MOST_OF_ALL
    await crowd[-1].asks(1, mandatory=True)
    await first.done()
    assert len(first.mgmt.asked) == MOST_OF_ALL + 1


async def test_it_is_bounded_by_bytes() -> None:
    """Of all that waits, and of what mgmt has."""
    first = Desked()
    first.mgmt.may.clear()
    crowd = [first, *_beside(first, 2 * BYTES_OF_ALL // BYTES)]
    large = bytes(LARGEST - 1000)
    for each in crowd:
        await each.asks(*range(4), body=large)
        await asyncio.sleep(0)
    assert first.desk._room.weight <= BYTES_OF_ALL
    first.mgmt.may.set()
    await first.done()
    assert first.desk._room.weight == first.desk._room.requests == 0


async def test_who_is_gone_keeps_no_room() -> None:
    """While mgmt hangs, clients come, ask and go: the next one is taken, and nothing of them is kept."""
    first = Desked()
    first.mgmt.may.clear()
    for _ in range(3):
        gone = _beside(first, _FULL)
        for each in gone:
            await each.asks(*range(MOST))
        await asyncio.sleep(0)
        for each in gone:
            each.ends(lost=True)
    kept = [weakref.ref(each.client) for each in gone]
    del gone, each
    late = Desked(first)
    await late.asks(1, mandatory=True)
    await asyncio.sleep(0.01)
    assert _returned(late) == 0
    assert len(first.desk._lines) <= 1 + _AT_ONCE
    gc.collect()
    assert sum(each() is not None for each in kept) <= _AT_ONCE
    first.mgmt.may.set()
    await first.done()
    assert late.mgmt.asked[-1].virtual_host == "/"
    assert len(first.mgmt.asked) == 1 + _AT_ONCE  # those that it had when they went
    assert first.desk._room.requests == 0


async def test_who_has_asked_before() -> None:
    """Gets the room of those that are gone as well as who has not."""
    first = Desked()
    first.mgmt.may.clear()
    await first.asks(1)
    gone = _beside(first, _FULL)
    for each in gone:
        await each.asks(*range(MOST))
    for each in gone:
        each.ends(lost=True)
    await first.asks(2, mandatory=True)
    assert _returned(first) == 0
    first.mgmt.may.set()
    await first.done()


async def test_who_goes_before_it_was_begun_with() -> None:
    """Nothing is left of it either, and others are served."""
    first, turns = Desked(), asyncio.Semaphore(0)
    first.desk._at_once = turns
    await first.asks(1)
    first.ends(lost=True)
    other = Desked(first)
    await other.asks(2)
    turns.release()
    await first.done()
    assert first.mgmt.numbers == [2]
    assert first.desk._room.requests == 0
