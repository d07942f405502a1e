"""What requests of many clients take, while mgmt does not answer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
import structlog

from services.common.authentication.fair_slots import FairSlots
from services.gateway.management import desk
from services.gateway.management.desk import _AT_ONCE
from services.gateway.management.line import BYTES, BYTES_OF_ALL, LARGEST, MOST, MOST_OF_ALL, Room, Taken
from services.gateway.management.presence import is_over
from tests.support.desked import Desked

_USERS = 20
_SHARE = MOST_OF_ALL // (_USERS + 1)
_FULL = MOST_OF_ALL // 2 // MOST
"""Connections with which one user has all that it may."""


def _beside(first: Desked, count: int, users: Sequence[str] = ("mallory",)) -> list[Desked]:
    return [Desked(first, users[number % len(users)]) for number in range(count)]


def _returned(desked: Desked) -> int:
    return sum(len(each.indexes) for each in desked.client.back)


async def test_all_lines_have_one_room() -> None:
    """However many clients ask, no more is kept; what is beyond is returned, and the log says so once."""
    first = Desked()
    first.mgmt.may.clear()
    crowd = [first, *_beside(first, 4 * _FULL, [f"user {number}" for number in range(_USERS)])]
    with structlog.testing.capture_logs() as logged:
        for each in crowd:
            await each.asks(*range(MOST), mandatory=True)
    taken = MOST * len(crowd) - sum(map(_returned, crowd))
    assert MOST_OF_ALL - _SHARE <= taken <= MOST_OF_ALL
    assert [line["log_level"] for line in logged] == ["warning"]
    first.mgmt.may.set()
    await first.done()
    assert len(first.mgmt.asked) == taken
    await crowd[-1].asks(1, mandatory=True)
    await first.done()
    assert len(first.mgmt.asked) == taken + 1


async def test_one_user_with_many_connections() -> None:
    """Has half of the room, another a third when both have what they may, and there is room for who comes next."""
    first = Desked()
    first.mgmt.may.clear()
    mallory, anna = _beside(first, 20), _beside(first, 20, ["anna"])
    for each in mallory:
        await each.asks(*range(MOST), mandatory=True)
    assert 20 * MOST - sum(map(_returned, mallory)) == MOST_OF_ALL // 2
    for each in anna:
        await each.asks(*range(MOST), mandatory=True)
    assert 20 * MOST - sum(map(_returned, anna)) == MOST_OF_ALL // 4
    late = Desked(first, "bert")
    await late.asks(*range(MOST), mandatory=True)
    assert _returned(late) == 0
    first.mgmt.may.set()
    await first.done()
    assert first.desk._room.all == Taken()
    assert not first.desk._room._of


async def test_one_user_with_large_requests() -> None:
    """Leaves room for others of the same size, and for one of another user where it is the last."""
    room = Room()
    while room.has_for("mallory", 1, LARGEST):
        room.take("mallory", 1, LARGEST)
    assert room.all.weight == BYTES_OF_ALL // 2
    while room.has_for("anna", 1, LARGEST):
        room.take("anna", 1, LARGEST)
    assert room.has_for("bert", BYTES // LARGEST, BYTES)


async def test_turns_of_users() -> None:
    """Who asks for one thing does not wait for all that another user's connections ask for."""
    first = Desked()
    first.desk._at_once = FairSlots(1, 0)
    first.mgmt.may.clear()
    crowd = _beside(first, 50)
    for number, each in enumerate(crowd):
        await each.asks(number)
    await Desked(first, "anna").asks(1000)
    await asyncio.sleep(0)
    first.mgmt.may.set()
    await first.done()
    assert first.mgmt.numbers.index(1000) <= 2


async def test_slow_requests_of_one_user() -> None:
    """Leave some of what mgmt has at once to others, who are asked while mgmt answers none of the first."""
    first = Desked()
    first.mgmt.may.clear()
    for user, asked in (("mallory", 4), ("anna", 6), ("bert", 7), ("carla", 8)):
        for each in _beside(first, 2 * _AT_ONCE, [user]):
            await each.asks(1)
        await asyncio.sleep(0)
        assert len(first.mgmt.asked) == asked
    first.mgmt.may.set()
    await first.done()
    assert len(first.mgmt.asked) == 4 * 2 * _AT_ONCE


async def test_a_read_that_finds_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines are looked at once for it, however many requests it holds."""
    first, looks = Desked(), 0
    first.mgmt.may.clear()
    crowd = _beside(first, MOST_OF_ALL // 2)
    for each in crowd:
        await each.asks(1)

    def looked(client: Any) -> bool:
        nonlocal looks
        looks += 1
        return is_over(client)

    monkeypatch.setattr(desk, "is_over", looked)
    await crowd[0].asks(*range(50), mandatory=True)
    assert _returned(crowd[0]) == 50
    assert looks <= 2 * len(crowd)
    first.mgmt.may.set()
    await first.done()


async def test_it_is_bounded_by_bytes() -> None:
    """Of all that waits, and of what mgmt has."""
    first = Desked()
    first.mgmt.may.clear()
    crowd = [first, *_beside(first, 2 * BYTES_OF_ALL // BYTES, ["anna", "bert", "carl"])]
    large = bytes(LARGEST - 1000)
    for each in crowd:
        await each.asks(*range(4), body=large)
        await asyncio.sleep(0)
    assert first.desk._room.all.weight <= BYTES_OF_ALL
    first.mgmt.may.set()
    await first.done()
    assert first.desk._room.all == Taken()


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
    assert len(first.desk._lines) <= 1 + _AT_ONCE // 2
    gc.collect()
    assert sum(each() is not None for each in kept) <= _AT_ONCE // 2
    first.mgmt.may.set()
    await first.done()
    assert late.mgmt.asked[-1].virtual_host == "/"
    assert len(first.mgmt.asked) == 1 + _AT_ONCE // 2  # those that it had when they went
    assert first.desk._room.all == Taken()


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
    first = Desked()
    first.desk._at_once = slots = FairSlots(1, 0)
    async with slots.slot("others", good=True):
        await first.asks(1)
        first.ends(lost=True)
        other = Desked(first)
        await other.asks(2)
    await first.done()
    assert first.mgmt.numbers == [2]
    assert first.desk._room.all == Taken()
