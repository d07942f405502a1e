"""Messages that have begun to come in, of all connections of a gateway, take a bounded amount of memory."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from services.gateway import incoming as module
from services.gateway.incoming import Incoming

MIB = 1 << 20


class FakeConnection:
    """Whether it is read, and whether it was ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.read = True
        self.ended = asyncio.Event()

    def hold(self, _reason: object) -> None:
        self.read = False

    def release(self, _reason: object) -> None:
        self.read = True

    def shut_down(self, _reason: str) -> None:
        self.ended.set()


def connections(count: int) -> list[Any]:
    return [cast("Any", FakeConnection(str(number))) for number in range(count)]


async def test_the_first_goes_on() -> None:
    """Above the limit only who began first is read, and when it is done the next; below it all are."""
    incoming, all_ = Incoming(3 * MIB), connections(4)
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
    incoming, (first, second) = Incoming(MIB), connections(2)
    incoming.note(first, MIB)
    incoming.note(second, MIB)
    assert not second.read
    incoming.forget(first)
    assert second.read


async def test_who_sends_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that others wait for, and that does not go on, ends; nobody is waited for while there is room."""
    monkeypatch.setattr(module, "_SILENCE", 0.01)
    incoming, (first, second, third) = Incoming(MIB), connections(3)
    incoming.note(first, MIB)
    await asyncio.sleep(0.05)
    assert not first.ended.is_set()
    incoming.note(second, MIB)
    incoming.note(third, MIB)
    await asyncio.wait_for(first.ended.wait(), 10)
    incoming.forget(first)
    await asyncio.wait_for(second.ended.wait(), 10)
    assert not third.ended.is_set()
