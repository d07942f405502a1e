"""Large bodies go to the queue process once, and come to consumers of all gateways as they were published."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.common.clients.kept_bodies import KeptBodies
from services.common.clients.outbound import Attempt
from services.common.clients.shared_bodies import SharedBodies
from services.rpc import queue_pb2 as pb
from tests.support.broker_house import BrokerHouse

_COUNT = 40


def _body(number: int) -> bytes:
    """Large ones, which are kept, among small ones."""
    return b"%d " % number * (20_000 if number % 4 else 1)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The uids of messages whose bodies did not come back to the gateway."""
    found: list[int] = []
    filled = KeptBodies.filled

    def noted(kept: KeptBodies, frame: pb.QueueFrame, bodies: list[bytes]) -> list[bytes]:
        found.extend(frame.deliveries.uids[index] for index in frame.deliveries.kept)
        return filled(kept, frame, bodies)

    monkeypatch.setattr(KeptBodies, "filled", noted)
    return found


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of bodies of each batch which the queue process reads in the gateway's memory."""
    found: list[int] = []
    put = SharedBodies.put

    def noted(bodies: SharedBodies, batch: pb.PublishBatch, attempts: Sequence[Attempt]) -> bool:
        done = put(bodies, batch, attempts)
        found.extend([len(batch.shared_sizes)] * done)
        return done

    monkeypatch.setattr(SharedBodies, "put", noted)
    return found


async def test_here_and_elsewhere(broker: BrokerHouse, name: str, named: list[int]) -> None:
    """Consumers at both gateways share a queue: each message comes to one of them, whole; some were not sent back."""
    publisher, here, there = await broker.connect(), await broker.connect(), await broker.connect(1)
    await publisher.declare(name)
    for consumer in (here, there):
        await consumer.consume(name, no_ack=True)
    for number in range(_COUNT):
        publisher.publish(_body(number), name)
        await publisher.writer.drain()
    await here.bodies(_COUNT // 2)
    await there.bodies(_COUNT // 2)
    bodies = [message.body for consumer in (here, there) for message in consumer.messages()]
    assert sorted(bodies) == sorted(map(_body, range(_COUNT)))
    assert len(named) == len(set(named)) > 0


async def test_given_back(broker: BrokerHouse, name: str, named: list[int], shared: list[int]) -> None:
    """Deliveries that a client gives back by leaving come to the next one as they were."""
    publisher, first = await broker.connect(), await broker.connect()
    await publisher.declare(name)
    await first.consume(name)
    for number in range(_COUNT):
        publisher.publish(_body(number), name)
        await publisher.writer.drain()
    await first.bodies(_COUNT)
    first.writer.close()
    second = await broker.connect()
    await second.consume(name)
    assert await second.bodies(_COUNT) == list(map(_body, range(_COUNT)))
    assert named
    assert shared
