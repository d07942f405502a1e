"""Messages that have begun to come in, of all connections of a gateway, take a bounded amount of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from services.gateway.connections.incoming import Incoming

MIB = 1 << 20


class FakeConnection:
    """Whether it is read, and whether it was ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.virtual_host = "/"
        self.holds: set[object] = set()
        self.ended = asyncio.Event()
        self.gone: Callable[[Any], None] | None = None

    @property
    def read(self) -> bool:
        return not self.holds

    def hold(self, reason: object) -> None:
        self.holds.add(reason)

    def release(self, reason: object) -> None:
        self.holds.discard(reason)

    def held_but(self, reason: object) -> bool:
        return bool(self.holds - {reason})

    def cut_off(self) -> None:
        self.ended.set()

    def shut_down(self, _reason: str) -> None:
        self.ended.set()
        if self.gone:
            asyncio.get_running_loop().call_soon(self.gone, self)


def connections(count: int) -> list[Any]:
    return [cast("Any", FakeConnection(str(number))) for number in range(count)]


async def test_the_first_goes_on() -> None:
    """Above the limit only the first that began is read, and when it is done the next; below it all are."""
    incoming, all_ = Incoming(3 * MIB, 60), connections(4)
    for each in all_:
        incoming.note(each, MIB)
    assert [each.read for each in all_] == [True, True, True, False]
    incoming.note(all_[1], 2 * MIB)
    incoming.note(all_[0], 2 * MIB)
    assert [each.read for each in all_] == [True, False, True, False]
    incoming.note(all_[2], 2 * MIB)
    assert [each.read for each in all_] == [True, False, False, False]
    incoming.note(all_[0], 0)
    assert [each.read for each in all_] == [True, True, False, False]
    incoming.note(all_[1], 0)
    assert [each.read for each in all_] == [True, True, True, False]
    incoming.note(all_[2], MIB)
    assert [each.read for each in all_] == [True] * 4
    assert incoming.total == 2 * MIB
    for each in all_:
        incoming.forget(each)
    assert incoming.total == 0


async def test_who_is_gone_is_not_waited_for() -> None:
    """When the first one leaves, others are read on."""
    incoming, (first, second) = Incoming(MIB, 60), connections(2)
    incoming.note(first, MIB)
    incoming.note(second, MIB)
    assert not second.read
    incoming.forget(first)
    assert second.read


async def test_who_sends_nothing_is_ended() -> None:
    """A connection that others wait for, and that makes no progress, ends; while there is room none ends."""
    incoming, (first, second, third) = Incoming(MIB, 0.4), connections(3)  # not less: a busy machine is late by 0.1
    incoming.note(first, MIB)
    await asyncio.sleep(0.5)
    assert not first.ended.is_set()
    incoming.note(second, MIB)
    incoming.note(third, MIB)
    await asyncio.wait_for(first.ended.wait(), 10)
    assert not third.ended.is_set()
    incoming.forget(first)
    assert second.read


async def test_who_has_little_goes_on() -> None:
    """Clients whose messages are small do not wait for a thousand that have begun large ones."""
    incoming, large = Incoming(100 * MIB, 60), connections(1000)
    for each in large:
        incoming.note(each, MIB // 5)
    assert not any(each.read for each in large[-100:])
    [small] = connections(1)
    for size in (10_000, 0, 60_000, 0):
        incoming.note(small, size)
        assert small.read


async def test_silence_of_many_makes_room_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand are not waited for one after the other: as many end as make room, and none that has little."""
    now = 0.0  # for all of them, however long it takes to make so many
    monkeypatch.setattr("services.gateway.connections.incoming._now", lambda: now)
    incoming, large = Incoming(100 * MIB, 0.5), connections(1000)
    [first, small] = connections(2)
    incoming.note(first, 1)
    incoming.note(small, 1)
    for each in large:
        each.gone = incoming.forget
        incoming.note(each, MIB // 5)
    read = sum(each.read for each in large)
    now = 1.0
    async with asyncio.timeout(10):
        while incoming.total > 88 * MIB:
            await asyncio.sleep(0.001)
    ended = [each for each in large if each.ended.is_set()]
    assert read < len(ended) < 570
    assert not first.ended.is_set()
    assert not small.ended.is_set()
    assert sum(each.read for each in large if each not in ended) >= 50  # as many reads as there is room


async def test_who_goes_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """While messages are completed no connection is ended, however long the others wait."""
    now = 0.0
    monkeypatch.setattr("services.gateway.connections.incoming._now", lambda: now)
    incoming, all_ = Incoming(MIB, 0.2), connections(5)
    for each in all_:
        incoming.note(each, MIB)
    for each in all_:
        assert each.read
        for more in range(4):
            now += 0.03
            incoming._look_again()
            incoming.note(each, MIB + more * MIB // 4)
        incoming.note(each, 0)
    assert not any(each.ended.is_set() for each in all_)


async def test_a_few_bytes_each_time_are_no_progress() -> None:
    """A client that sends a byte now and then holds memory as one that sends nothing."""
    incoming, (slow, other) = Incoming(MIB, 0.05), connections(2)
    incoming.note(slow, MIB)
    incoming.note(other, MIB)
    for more in range(20):
        await asyncio.sleep(0.01)
        incoming.note(slow, MIB + more)
    assert slow.ended.is_set()


async def test_who_is_held_for_another_reason_is_not_ended() -> None:
    """A publisher that waits for queues cannot go on."""
    incoming, (blocked, other) = Incoming(MIB, 0.02), connections(2)
    incoming.note(blocked, MIB)
    incoming.note(other, MIB)
    blocked.hold("the queues")
    await asyncio.sleep(0.1)
    assert not blocked.ended.is_set()


async def test_room_goes_to_who_uses_it() -> None:
    """Those that were given room and send nothing do not keep it from others, though there is just room enough."""
    incoming, large, silent, [client] = Incoming(64 * MIB, 0.05), connections(4), connections(100), connections(1)
    for each in (*large, *silent):
        each.gone = incoming.forget
    for each in large:
        incoming.note(each, 16 * MIB)
    for each in (*silent, client):
        incoming.note(each, 96 << 10)
    assert not client.read
    async with asyncio.timeout(10):
        while not client.read:
            await asyncio.sleep(0.001)
    assert not client.ended.is_set()


async def test_turns() -> None:
    """Where there is room for one read, waiting connections get it in turn while it is unused."""
    incoming, (first, *others) = Incoming(2 * MIB, 60), connections(4)
    for each in (first, *others):
        incoming.note(each, 2 * MIB if each is first else MIB // 8)
    incoming.note(first, 2 * MIB - 3 * MIB // 8 - MIB // 4)
    async with asyncio.timeout(10):
        for turn in (0, 1, 2, 0):
            while not others[turn].read:
                await asyncio.sleep(0.001)
            assert [each.read for each in others].count(True) == 1
    assert first.read


async def test_strangers_do_not_take_what_clients_have() -> None:
    """However many begin to sign in and stop, clients that have signed in are read; the first of them are closed."""
    incoming, [client], strangers = Incoming(MIB, 0.01), connections(1), connections(200)
    for each in strangers:
        each.virtual_host = ""
    incoming.note(client, 100 << 10)
    with capture_logs() as logged:
        for each in strangers:
            incoming.note(each, 8000)
    assert client.read
    assert incoming.total == 100 << 10
    assert [each.ended.is_set() for each in strangers] == [True] * 168 + [False] * 32
    assert len(logged) == 1
    await asyncio.sleep(0.05)
    assert not client.ended.is_set()


async def test_strangers_that_become_clients() -> None:
    """What a peer has begun counts as a client's once it has signed in, and not at all when it is gone."""
    incoming, (peer, other) = Incoming(MIB, 60), connections(2)
    for each in (peer, other):
        each.virtual_host = ""
        incoming.note(each, 100 << 10)
    incoming.forget(other)
    peer.virtual_host = "/"
    incoming.note(peer, 200 << 10)
    assert incoming.total == 200 << 10
    for each in connections(2):
        each.virtual_host = ""
        incoming.note(each, 128 << 10)
        assert not each.ended.is_set()
