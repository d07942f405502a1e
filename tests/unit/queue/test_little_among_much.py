"""A gateway leaves that had little of a queue, or nothing, of which others hold much; or some of very many queues."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from services.queue.machine import turn
from services.queue.machine.giving_back import GivingBack
from tests.support.queue_house import House

FEW, MANY = 10, 95


@pytest.mark.parametrize("count", [0, 3])
async def test_what_it_had_comes_back(house: House, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """In order, in as many turns as it takes to give that back; what is others' is only looked at."""
    monkeypatch.setattr(turn, "AT_ONCE", 2)
    monkeypatch.setattr(turn, "SCATTERED", 2)
    monkeypatch.setattr(turn, "SEEN", FEW)
    queue_id = await house.declare("q")
    link, gone, other = await house.link(), await house.link(origin=1001), await house.link(origin=1002)
    await link.attach(queue_id, messages=MANY)
    await link.publish(queue_id, [b"x"] * MANY)
    await link.until(lambda: len(link.uids) == MANY)
    await gone.attach(queue_id, messages=count)
    if count:
        await link.publish(queue_id, [b"1", b"2", b"3"])
    await gone.until(lambda: len(gone.uids) == count)
    released, looked, release, had = list[int](), list[int](), GivingBack.release, GivingBack.had

    def releases(self: GivingBack, uids: list[int], *said: object, **last: bool) -> None:
        released.append(len(uids))
        release(self, uids, *said, **last)

    def looks(self: GivingBack, uids: list[int], holder: object) -> list[int]:
        looked.append(len(uids))
        return had(self, uids, holder)

    monkeypatch.setattr(GivingBack, "release", releases)
    monkeypatch.setattr(GivingBack, "had", looks)
    await gone.close()
    await link.until(lambda: sum(released) == count and sum(looked) == MANY + count)
    await link.publish(queue_id, [b"behind"])
    await other.attach(queue_id)
    await other.until(lambda: len(other.bodies) == count + 1)
    assert other.bodies == [*[b"1", b"2", b"3"][:count], b"behind"]
    assert (max(looked), released) == (FEW, [2, 1] if count else [0])


async def test_some_of_many_queues(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back a queue at a time, where two would be too much for a turn; then the next consumer has all of it."""
    monkeypatch.setattr(turn, "AT_ONCE", FEW)
    gone, other = await house.link(origin=1001), await house.link(origin=1002)
    queue_ids = [await house.declare(f"q-{number}") for number in range(5)]
    for handle, queue_id in enumerate(queue_ids, 1):
        await gone.attach(queue_id, handle)
        await gone.publish(queue_id, [b"x"] * (FEW - 1))
    await gone.until(lambda: len(gone.uids) == 5 * (FEW - 1))
    turns, at, release = 0, Counter[int](), GivingBack.release_held_by

    def releases(self: GivingBack, holder: object, now: int) -> list[int]:
        at[turns] += 1
        return release(self, holder, now)

    monkeypatch.setattr(GivingBack, "release_held_by", releases)
    closing = asyncio.ensure_future(gone.close())
    async with asyncio.timeout(10):
        while sum(at.values()) < len(queue_ids):
            await asyncio.sleep(0)
            turns += 1
        await closing
    assert set(at.values()) == {1}
    for handle, queue_id in enumerate(queue_ids, 1):
        await other.attach(queue_id, handle)
    await other.until(lambda: len(other.uids) == 5 * (FEW - 1))
