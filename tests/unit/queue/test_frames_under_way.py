"""Frames of a hand-over: some are on their way while the store writes another, and not more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from services.common.errors import PreconditionFailed
from services.queue.partitions.hand_over import in_order
from services.rpc.store_pb2 import JournalAck, JournalFrame

MANY, MOST = 10, 4


class Store:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.made = 0
        self.asked: list[asyncio.Future[JournalAck]] = []

    def frames(self) -> Iterator[JournalFrame]:
        """One after the other, as there is room for them."""
        for number in range(MANY):
            self.made += 1
            yield JournalFrame(sequence=number)

    def append(self, frame: JournalFrame) -> asyncio.Future[JournalAck]:
        assert frame.sequence == len(self.asked)
        self.asked.append(asyncio.get_running_loop().create_future())
        return self.asked[-1]


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_few_are_under_way() -> None:
    """In order, and the next is not made before there is room for it."""
    store = Store()
    writing = asyncio.ensure_future(in_order(store.frames(), store.append, lambda: True))
    for answered in range(MANY):
        await _settled()
        assert len(store.asked) == min(answered + MOST, MANY)
        assert store.made <= len(store.asked) + 1
        store.asked[answered].set_result(JournalAck())
    assert await writing


@pytest.mark.parametrize("after", [1, MANY - 1])
async def test_a_later_owner(after: int) -> None:
    """No more are sent, and nobody waits for the others' answers."""
    store = Store()
    writing = asyncio.ensure_future(in_order(store.frames(), store.append, lambda: True))
    for answered in range(after):
        await _settled()
        store.asked[answered].set_result(JournalAck())
    await _settled()
    store.asked[after].set_result(JournalAck(fenced=["partition-7"]))
    assert await writing is False
    assert len(store.asked) == min(after + MOST, MANY)
    assert all(each.done() for each in store.asked)


async def test_what_the_store_refuses() -> None:
    """Is raised; the refusals of others are no news."""
    store = Store()
    writing = asyncio.ensure_future(in_order(store.frames(), store.append, lambda: True))
    await _settled()
    for each in store.asked:
        each.set_exception(PreconditionFailed("no sense"))
    with pytest.raises(PreconditionFailed):
        await writing


async def test_a_partition_that_does_not_leave_any_more() -> None:
    """Nothing more is sent of it."""
    store, leaves = Store(), True
    writing = asyncio.ensure_future(in_order(store.frames(), store.append, lambda: leaves))
    await _settled()
    leaves = False
    store.asked[0].set_result(JournalAck())
    await _settled()
    assert await writing
    assert len(store.asked) <= MOST + 1
