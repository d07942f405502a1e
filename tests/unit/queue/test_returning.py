"""New consumers where exclusivity matters, while the gateway of the former one may come back."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from services.queue.links import link as links
from services.queue.partitions.partitions import Partitions
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink

ORIGIN, OTHER = 1001, 1002


def answers(link: RawLink, consumer: int = 1) -> list[int]:
    """The reasons."""
    return [each.reason for frame in link.frames for each in frame.attached if each.consumer == consumer]


def detached(link: RawLink) -> list[int]:
    return [handle for frame in link.frames for handle in frame.detached]


async def ask(link: RawLink, queue_id: int, consumer: int = 1, *, messages: int = 10, **more: Any) -> None:
    """Returns when that has been read, answered or not; the reply to `inspect` has the consumer's number."""
    attach = pb.AttachConsumer(consumer=consumer, queue_id=queue_id, messages=messages, bytes=9999, **more)
    await link.send(attaches=[attach])
    await link.ready(queue_id, consumer)


class Stage:
    """A consumer whose stream broke, and a link of another gateway."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.host = house.queues["queue-1"]._host
        self.queue_id: int
        self.other: RawLink

    async def prepare(self, *, exclusive: bool = False, **queue: Any) -> None:
        self.queue_id = await self.house.declare("q", **queue)
        former, self.other = await self.house.link(origin=ORIGIN, tells=True), await self.house.link(origin=OTHER)
        await former.attach(self.queue_id, exclusive=exclusive)
        await former.close()
        await self.other.until(lambda: self.host.departed)

    def told(self) -> pb.Told:
        partition = self.host.registry.partition_of(self.queue_id)
        assert partition
        return pb.Told(partition=partition.number, epoch=partition.epoch)

    async def come_back(self, **attach: Any) -> RawLink:
        """With the consumer, unless it has ended; waits for nothing."""
        link = await self.house.link(origin=ORIGIN, tells=True)
        again = [pb.AttachConsumer(consumer=9, queue_id=self.queue_id, again=True, **attach)] if attach else []
        await link.send(attaches=again, told=[self.told()])
        return link

    @property
    def consumers(self) -> int:
        return len(self.host.registry.queues[self.queue_id].consumers)


@pytest.fixture
async def stage(house: House, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A gateway that went away has a minute to come back."""
    monkeypatch.setattr(links, "_RETURN_SECONDS", 60.0)
    return Stage(house)


@pytest.fixture
async def brief(house: House, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A gateway that went away has only a moment to come back."""
    monkeypatch.setattr(links, "_RETURN_SECONDS", 1.0)
    return Stage(house)


@pytest.mark.parametrize(("was", "asks"), [(False, True), (True, False), (True, True)])
async def test_the_former_consumer_comes_back(stage: Stage, was: bool, asks: bool) -> None:
    """The newcomer is refused then, and not before."""
    await stage.prepare(exclusive=was)
    await ask(stage.other, stage.queue_id, exclusive=asks)
    assert answers(stage.other) == []
    back = await stage.come_back(exclusive=was)
    await stage.other.until(lambda: answers(stage.other))
    assert (answers(stage.other), answers(back, 9)) == ([pb.EXCLUSIVE_USE], [pb.NONE])
    assert stage.consumers == 1


async def test_its_gateway_comes_back_without_it(stage: Stage) -> None:
    """A hello alone does not say whether the consumer is still there: that is known when the gateway has told all."""
    await stage.prepare(exclusive=True)
    await ask(stage.other, stage.queue_id, exclusive=True)
    await (await stage.house.link(origin=ORIGIN, tells=True)).ready(stage.queue_id, 1)
    assert answers(stage.other) == []
    await stage.come_back()
    await stage.other.until(lambda: answers(stage.other) == [pb.NONE])


async def test_no_gateway_comes_back(brief: Stage) -> None:
    """A client whose gateway died has its queue again: the first that asked, with what waits in it."""
    await brief.prepare(exclusive=True)
    await brief.other.publish(brief.queue_id, [b"1"])
    await ask(brief.other, brief.queue_id, 1, exclusive=True)
    await ask(brief.other, brief.queue_id, 2)
    assert answers(brief.other, 1) + answers(brief.other, 2) == []
    await brief.other.until(lambda: brief.other.bodies == [b"1"])
    assert answers(brief.other, 1) + answers(brief.other, 2) == [pb.NONE, pb.EXCLUSIVE_USE]


@pytest.mark.parametrize("lives", [True, False])
async def test_consumers_that_are_not_concerned(stage: Stage, lives: bool) -> None:
    """A plain one beside plain ones is let in at once; an exclusive one is refused at once for one that is there."""
    await stage.prepare()
    if lives:
        await ask(stage.other, stage.queue_id, 1)
        await ask(stage.other, stage.queue_id, 2, exclusive=True)
        assert (answers(stage.other, 1), answers(stage.other, 2)) == ([pb.NONE], [pb.EXCLUSIVE_USE])
    else:
        await ask(stage.other, await stage.house.declare("another"), 3, exclusive=True)
        assert answers(stage.other, 3) == [pb.NONE]


async def test_what_was_held_comes_first(brief: Stage) -> None:
    """A client that has lost its gateway is given what it had, and then what stands behind that."""
    brief.queue_id = await brief.house.declare("q")
    former, brief.other = await brief.house.link(origin=ORIGIN, tells=True), await brief.house.link(origin=OTHER)
    await brief.other.publish(brief.queue_id, [b"1", b"2", b"3"])
    await former.attach(brief.queue_id, messages=2)
    await former.until(lambda: former.bodies == [b"1", b"2"])
    await former.close()
    await brief.other.until(lambda: brief.host.departed)
    await ask(brief.other, brief.queue_id)
    assert answers(brief.other) == []
    await brief.other.until(lambda: len(brief.other.bodies) == 3)
    assert brief.other.bodies == [b"1", b"2", b"3"]


async def test_beside_others_nothing_is_waited_for(stage: Stage) -> None:
    """They are given what stands behind it anyway."""
    stage.queue_id = await stage.house.declare("q")
    former, stage.other = await stage.house.link(origin=ORIGIN, tells=True), await stage.house.link(origin=OTHER)
    await stage.other.publish(stage.queue_id, [b"1", b"2"])
    await former.attach(stage.queue_id, messages=1)
    await former.until(lambda: former.bodies == [b"1"])
    await ask(stage.other, stage.queue_id, 1)
    await former.close()
    await stage.other.until(lambda: stage.host.departed)
    await ask(stage.other, stage.queue_id, 2)
    assert answers(stage.other, 2) == [pb.NONE]


async def test_credit_and_cancel_wait_behind_it(stage: Stage) -> None:
    """They are carried out in their order: what the credit brings comes before the end."""
    await stage.prepare(exclusive=True)
    other = stage.other
    await other.publish(stage.queue_id, [b"1", b"2"])
    await ask(other, stage.queue_id, messages=0, exclusive=True)
    await other.send(credits=[pb.Credit(consumer=1, messages=1)])
    await other.send(detaches=[1])
    assert await other.ready(stage.queue_id, 2) == 2
    assert detached(other) == []
    await stage.come_back()
    await other.until(lambda: detached(other))
    assert (answers(other), other.bodies, detached(other)) == ([pb.NONE], [b"1"], [1])
    assert stage.consumers == 0


async def test_cancelled_and_refused(stage: Stage) -> None:
    """Both are answered."""
    await stage.prepare(exclusive=True)
    await ask(stage.other, stage.queue_id)
    await stage.other.send(detaches=[1])
    await stage.come_back(exclusive=True)
    await stage.other.until(lambda: detached(stage.other) == [1])
    assert answers(stage.other) == [pb.EXCLUSIVE_USE]


async def test_its_link_ends(stage: Stage) -> None:
    """It is not let in any more, and blocks no other."""
    await stage.prepare(exclusive=True)
    await ask(stage.other, stage.queue_id, exclusive=True)
    await stage.other.close()
    third = await stage.house.link(origin=1003)
    await third.until(lambda: OTHER not in {link.origin for link in stage.host.links})
    await ask(third, stage.queue_id, exclusive=True)
    await stage.come_back()
    await third.until(lambda: answers(third) == [pb.NONE])
    assert stage.consumers == 1


async def test_it_asks_again(stage: Stage) -> None:
    """A consumer that got no answer, and asks again under the same handle, is one consumer, as it asked last."""
    await stage.prepare(exclusive=True)
    await ask(stage.other, stage.queue_id, exclusive=True)
    await stage.other.send(attaches=[pb.AttachConsumer(consumer=1, queue_id=stage.queue_id, priority=7)])
    await stage.other.ready(stage.queue_id, 2)
    await stage.come_back()
    await stage.other.until(lambda: answers(stage.other))
    await stage.other.ready(stage.queue_id, 3)
    assert answers(stage.other) == [pb.NONE]
    [consumer] = stage.host.registry.queues[stage.queue_id].consumers
    assert (consumer.priority, consumer.exclusive) == (7, False)


async def test_the_queue_is_deleted(brief: Stage) -> None:
    """It gets that answer, as any consumer does."""
    await brief.prepare(exclusive=True)
    await ask(brief.other, brief.queue_id, exclusive=True)
    await brief.house.delete("q")
    await brief.other.until(lambda: answers(brief.other) == [pb.UNKNOWN_QUEUE])


async def test_the_partition_leaves(brief: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hears that another process has to be asked."""
    monkeypatch.setattr(Partitions, "_gain", Mock())
    await brief.prepare(exclusive=True)
    await ask(brief.other, brief.queue_id, exclusive=True)
    partition = brief.host.registry.partition_of(brief.queue_id)
    assert partition
    brief.host.registry.drop(partition)
    await brief.other.until(lambda: answers(brief.other) == [pb.NOT_OWNER])


async def test_a_queue_that_goes_with_its_last_consumer(brief: Stage) -> None:
    """It stays for the one who waits."""
    await brief.prepare(exclusive=True, auto_delete=True)
    await ask(brief.other, brief.queue_id, exclusive=True)
    await brief.other.until(lambda: not brief.host.departed)
    await brief.other.ready(brief.queue_id, 2)
    assert answers(brief.other) == [pb.NONE]
    assert brief.queue_id not in brief.host.registry.deleting


async def test_leases_that_may_have_run_out(brief: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """No gateway is heard meanwhile, so the former consumer has its whole moment afterwards."""
    await brief.prepare(exclusive=True)
    await ask(brief.other, brief.queue_id, exclusive=True)
    host, holds = brief.host, brief.host.leases_hold
    host.leases_hold = lambda: False
    await asyncio.sleep(1.2)
    monkeypatch.setattr(links, "_RETURN_SECONDS", 60.0)
    host.leases_hold = holds
    host.resume(valid=True)
    await asyncio.sleep(0.1)
    assert answers(brief.other) == []
    await brief.come_back(exclusive=True)
    await brief.other.until(lambda: answers(brief.other) == [pb.EXCLUSIVE_USE])
