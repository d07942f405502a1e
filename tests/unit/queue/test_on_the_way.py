"""A consumer ends while messages are on their way to it: the next one gets them first, when they are back."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from services.queue.links import on_the_way
from services.queue.links.ending import end
from services.queue.machine.consumers import Consumer, Consumers
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES
from tests.support.queue_house import House, RawLink
from tests.support.queue_machine import AMQP_0_9

_ORIGIN, _OTHER = 1001, 1002
_ALL = [b"a", b"b", b"c", b"d"]


def _attach(queue_id: int, consumer: int, **more: Any) -> pb.AttachConsumer:
    return pb.AttachConsumer(consumer=consumer, queue_id=queue_id, messages=10, bytes=1 << 20, **more)


def _to(link: RawLink, consumer: int) -> list[bytes]:
    """The bodies that a consumer was sent."""
    found: list[bytes] = []
    for frame in link.frames:
        at = 0
        for run in frame.deliveries.runs:
            found += frame.deliveries.bodies[at : at + run.count] if run.consumer == consumer else []
            at += run.count
    return found


def _heard(link: RawLink) -> int:
    """How many frames it has read, as a gateway says it."""
    return sum(1 for frame in link.frames if frame.done)


class Stage:
    """A consumer that was sent the first two of four messages, which its gateway has not read yet."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.queue_id: int
        self.link: RawLink
        self.other: RawLink

    async def prepare(self, **queue: Any) -> None:
        self.queue_id = await self.house.declare("q", **queue)
        self.link = await self.house.link(origin=_ORIGIN, tells=True)
        self.other = await self.house.link(origin=_OTHER, tells=True)
        await self.link.attach(self.queue_id, messages=2)
        await self.other.publish(self.queue_id, _ALL)
        await self.link.until(lambda: len(self.link.uids) == 2)

    async def prepare_beside(self, consumer: int, properties: bytes, **queue: Any) -> None:
        """The same beside a consumer of the other gateway; all messages have these properties."""
        self.queue_id = await self.house.declare("q", **queue)
        self.link = await self.house.link(origin=_ORIGIN, tells=True)
        self.other = await self.house.link(origin=_OTHER, tells=True)
        await self.link.attach(self.queue_id, messages=2)
        await self.next(consumer)
        await self.other.publish(self.queue_id, _ALL, properties=properties)
        await self.link.until(lambda: len(self.link.uids) == 2)

    async def next(self, consumer: int = 2, **attach: Any) -> None:
        """The next consumer, of the other gateway; returns when it is answered."""
        await self.other.send(attaches=[_attach(self.queue_id, consumer, **attach)])
        await self.other.ready(self.queue_id, consumer)

    async def ends(self) -> None:
        """Returns when its gateway hears that."""
        await self.link.send(detaches=[1])
        await self.link.until(lambda: any(1 in frame.detached for frame in self.link.frames))

    async def comes_back(self, outcome: pb.Outcome.ValueType = pb.RESTORE) -> None:
        """Both gateways have read all, and its own gives back what it cannot deliver."""
        settle = pb.Settle(queue_id=self.queue_id, outcome=outcome, uids=self.link.uids[:2])
        await self.link.send(settles=[settle] if self.link.uids else [], heard=_heard(self.link))
        await self.other.send(heard=_heard(self.other))


@pytest.fixture
def stage(house: House, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(on_the_way, "_SECONDS", 30)
    return Stage(house)


async def test_the_next_one_gets_all_in_order(stage: Stage) -> None:
    """Nothing overtakes what is on its way back, and its client is told nothing of a former delivery."""
    await stage.prepare()
    await stage.ends()
    await stage.next()
    assert _to(stage.other, 2) == []
    await stage.comes_back()
    await stage.other.until(lambda: len(_to(stage.other, 2)) == 4)
    assert _to(stage.other, 2) == _ALL
    assert not any(run.attempts for run in stage.other.runs)


async def test_both_by_one_frame(stage: Stage) -> None:
    """The next one of the same gateway comes by the frame that ends the former."""
    await stage.prepare()
    await stage.link.send(detaches=[1], attaches=[_attach(stage.queue_id, 2)])
    await stage.link.ready(stage.queue_id, 2)
    assert _to(stage.link, 2) == []
    await stage.comes_back()
    await stage.link.until(lambda: len(_to(stage.link, 2)) == 4)
    assert _to(stage.link, 2) == _ALL


async def test_all_is_given_back_by_the_frame_that_ends_it(stage: Stage) -> None:
    """Then nothing is waited for."""
    await stage.prepare()
    settle = pb.Settle(queue_id=stage.queue_id, outcome=pb.ABANDON, uids=stage.link.uids)
    await stage.link.send(settles=[settle], detaches=[1])
    await stage.next()
    await stage.other.until(lambda: len(_to(stage.other, 2)) == 4)
    assert _to(stage.other, 2) == _ALL


async def test_what_its_client_keeps(stage: Stage) -> None:
    """A cancelled consumer's client may hold messages for long: the others are served once the gateway has read."""
    await stage.prepare()
    await stage.ends()
    await stage.next()
    await stage.link.send(heard=_heard(stage.link))
    await stage.other.until(lambda: _to(stage.other, 2) == [b"c", b"d"])


async def test_others_go_on(stage: Stage) -> None:
    """A consumer that was there besides is given what there is; and so is one that comes then."""
    await stage.prepare()
    await stage.other.send(attaches=[_attach(stage.queue_id, 3)])
    await stage.other.until(lambda: _to(stage.other, 3) == [b"c", b"d"])
    await stage.ends()
    await stage.next()
    await stage.other.publish(stage.queue_id, [b"e", b"f"])
    await stage.other.until(lambda: sorted(_to(stage.other, 2) + _to(stage.other, 3)) == [b"c", b"d", b"e", b"f"])


async def test_one_of_several_after_the_other(stage: Stage) -> None:
    """The last of them to end is waited for, and by that the first."""
    await stage.prepare()
    await stage.link.attach(stage.queue_id, 4, messages=1)
    await stage.link.until(lambda: len(stage.link.uids) == 3)
    await stage.link.send(detaches=[1])
    await stage.link.send(detaches=[4])
    await stage.link.until(lambda: any(4 in frame.detached for frame in stage.link.frames))
    await stage.next()
    assert _to(stage.other, 2) == []
    settle = pb.Settle(queue_id=stage.queue_id, outcome=pb.RESTORE, uids=stage.link.uids)
    await stage.link.send(settles=[settle], heard=_heard(stage.link))
    await stage.other.until(lambda: _to(stage.other, 2) == _ALL)


async def test_the_single_active_one_ends(stage: Stage) -> None:
    """The one that waited becomes it, and is served when what was on its way is back."""
    await stage.prepare(table={"x-single-active-consumer": True})
    await stage.next()
    await stage.ends()
    await stage.other.ready(stage.queue_id, 9)
    assert _to(stage.other, 2) == []
    await stage.comes_back()
    await stage.other.until(lambda: _to(stage.other, 2) == _ALL)


async def test_who_gets_without_consuming(stage: Stage) -> None:
    """The reply waits, and has the first message."""
    await stage.prepare()
    await stage.ends()
    asked = asyncio.ensure_future(stage.other.request(5, get=pb.GetRequest(queue_id=stage.queue_id)))
    await stage.other.ready(stage.queue_id, 6)
    assert not asked.done()
    await stage.comes_back()
    assert list((await asyncio.wait_for(asked, 10)).message.bodies) == [b"a"]


async def test_a_gateway_that_says_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the next one is served; what comes back then comes behind."""
    monkeypatch.setattr(on_the_way, "_SECONDS", 0.05)
    await stage.prepare()
    await stage.ends()
    await stage.next()
    await stage.other.until(lambda: _to(stage.other, 2) == [b"c", b"d"])
    await stage.comes_back()
    await stage.other.until(lambda: _to(stage.other, 2) == [b"c", b"d", b"a", b"b"])


@pytest.mark.parametrize("seconds", [0.05, 30])
async def test_a_gateway_that_goes(stage: Stage, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """What it had is back first, as delivered before; then nothing more is waited for."""
    monkeypatch.setattr(on_the_way, "_SECONDS", seconds)
    await stage.prepare()
    await stage.ends()
    await stage.next()
    await stage.link.close()
    async with asyncio.timeout(10):
        await stage.other.until(lambda: len(_to(stage.other, 2)) == 4)
    assert _to(stage.other, 2) == _ALL
    assert [(run.count, run.attempts) for run in stage.other.runs] == [(2, 1), (2, 0)]


async def test_a_queue_that_is_deleted_meanwhile(stage: Stage) -> None:
    """Nobody is served by it."""
    await stage.prepare()
    await stage.ends()
    await stage.house.delete("q")
    await stage.comes_back()
    other = await stage.house.declare("r")
    await stage.other.attach(other, 7)
    await stage.other.publish(other, [b"x"])
    await stage.other.until(lambda: _to(stage.other, 7) == [b"x"])


class _Looked(Consumer):
    """Counts how often it is looked at."""

    __slots__ = ()
    looks = 0

    @property
    def browse(self) -> bool:  # type: ignore[override]
        _Looked.looks += 1
        return False

    @browse.setter
    def browse(self, _: bool) -> None: ...


def test_many_that_end_one_after_the_other() -> None:
    """Not all of them are looked at for each: where somebody else is served there is nothing to wait for."""
    consumers, many = Consumers(), [_Looked(number, Mock(), messages=1, size=1) for number in range(1000)]
    for each in many:
        consumers.add(each)
    _Looked.looks = 0
    assert not any(consumers.are_all({each}) for each in many)
    assert _Looked.looks < 10_000
    assert consumers.are_all(set(many))


async def test_a_group_of_messages(stage: Stage) -> None:
    """It becomes another's who is there already, from its beginning."""
    await stage.prepare_beside(3, AMQP_0_9.with_headers(PROPERTIES, {"g": "a"}), table={"qpid.group_header_key": "g"})
    assert _to(stage.other, 3) == []
    await stage.ends()
    await stage.other.ready(stage.queue_id, 9)
    assert _to(stage.other, 3) == []
    await stage.comes_back()
    await stage.other.until(lambda: _to(stage.other, 3) == _ALL)


async def test_a_stolen_link(stage: Stage) -> None:
    """Who takes a consumer's place gets what was on its way to it first."""
    await stage.prepare()
    await stage.next(steals=True)
    await stage.link.until(lambda: any(frame.cancelled for frame in stage.link.frames))
    assert _to(stage.other, 2) == []
    await stage.comes_back()
    await stage.other.until(lambda: _to(stage.other, 2) == _ALL)


async def test_a_link_that_is_stolen_on_its_connection(stage: Stage) -> None:
    """The same through one gateway, whose client keeps what it has."""
    await stage.prepare()
    await stage.link.send(attaches=[_attach(stage.queue_id, 2, steals=True)])
    await stage.link.until(lambda: any(frame.cancelled for frame in stage.link.frames))
    assert _to(stage.link, 2) == []
    await stage.link.send(heard=_heard(stage.link))
    await stage.link.until(lambda: _to(stage.link, 2) == [b"c", b"d"])


async def test_immediate_messages(stage: Stage) -> None:
    """They wait for what comes back, where the next consumer has credit for all of it."""
    await stage.prepare()
    await stage.ends()
    await stage.next()
    await stage.other.publish(stage.queue_id, [b"e", b"f", b"g", b"h", b"i", b"j", b"k"], immediate=True)
    refused = [(each.reason, each.first, each.count) for frame in stage.other.frames for each in frame.refusals]
    assert refused == [(pb.NO_CONSUMERS, 6, 1)]  # of credit for 10: 2 come back, 2 wait
    await stage.comes_back()
    await stage.other.until(lambda: len(_to(stage.other, 2)) == 10)
    assert _to(stage.other, 2) == [*_ALL, b"e", b"f", b"g", b"h", b"i", b"j"]


async def test_immediate_messages_for_nobody(stage: Stage) -> None:
    """Without a next consumer they are refused."""
    await stage.prepare()
    await stage.ends()
    await stage.other.publish(stage.queue_id, [b"e"], immediate=True)
    assert [each.reason for frame in stage.other.frames for each in frame.refusals] == [pb.NO_CONSUMERS]


async def test_a_consumer_that_the_queue_cancels(stage: Stage) -> None:
    """The next one gets what was on its way to it first, as if its client had ended it."""
    await stage.prepare()
    host = stage.house.queues["queue-1"]._host
    (link,) = (each for each in host.links if each.origin == _ORIGIN)
    end(host, link, 1, pb.OTHER)
    await stage.next()
    assert _to(stage.other, 2) == []
    await stage.comes_back()
    await stage.other.until(lambda: _to(stage.other, 2) == _ALL)


async def test_two_gateways(stage: Stage) -> None:
    """Their consumers end together: both have read as far before the next one is served."""
    await stage.prepare()
    third = await stage.house.link(origin=_OTHER + 1, tells=True)
    await stage.other.attach(stage.queue_id, 3, messages=1)
    await stage.other.until(lambda: _to(stage.other, 3) == [b"c"])
    await stage.ends()
    await stage.other.send(detaches=[3])
    await stage.other.until(lambda: any(3 in frame.detached for frame in stage.other.frames))
    settle = pb.Settle(queue_id=stage.queue_id, outcome=pb.RESTORE, uids=stage.other.uids)
    await stage.other.send(settles=[settle], heard=_heard(stage.other))
    await third.attach(stage.queue_id, 4)
    await third.ready(stage.queue_id, 9)
    assert _to(third, 4) == []
    await stage.comes_back()
    await third.until(lambda: _to(third, 4) == _ALL)
