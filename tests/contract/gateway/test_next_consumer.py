"""A consumer goes while messages are on their way to it, and another one comes: that one gets them first, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands

from services.common.clients.queue_link import QueueLink
from services.queue.links import on_the_way
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until


class Held:
    """What queue processes send to a gateway, while it does not get to read that."""

    def __init__(self, links: list[QueueLink], monkeypatch: pytest.MonkeyPatch) -> None:
        self._frames: list[tuple[QueueLink, bytes]] = []
        self._links, self._monkeypatch = links, monkeypatch

    def hold(self) -> None:
        read = QueueLink.received

        def received(link: QueueLink, message: bytes) -> None:
            if link in self._links:
                self._frames.append((link, message))
            else:
                read(link, message)

        self._monkeypatch.setattr(QueueLink, "received", received)

    def go_on(self, *, busy: bool = False) -> None:
        """`busy`: it was about to write something."""
        self._monkeypatch.undo()
        for link in self._links if busy else ():
            link._write_soon()
        for link, message in self._frames:
            link.received(message)


@pytest.fixture
def held(broker: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> Held:
    """Of the first gateway."""
    return Held(list(broker.gateways[0]._broker.publisher._links.values()), monkeypatch)


def queue_of(broker: BrokerHouse, name: str) -> Any:
    """The queue of that name, in the process that owns it."""
    for process in broker.queues.values():
        for queue in process._host.registry.queues.values():
            if queue.options.name == name:
                return queue
    return None


def _parked(broker: BrokerHouse) -> int:
    """How many deliveries the first gateway keeps, since their clients have no room for them."""
    kept = (each._backlog._kept for each in broker.gateways[0]._broker.sessions)
    return sum(len(arrived.uids) for each in kept for waiting in each.values() for arrived in waiting)


async def closes(client: AmqpClient) -> None:
    await client.call(1, commands.Channel.Close(200, "", 0, 0), commands.Channel.CloseOk)


async def leaves(client: AmqpClient) -> None:
    await client.call(0, commands.Connection.Close(200, "", 0, 0), commands.Connection.CloseOk)


@pytest.mark.parametrize("goes", [closes, leaves])
@pytest.mark.parametrize("waits", [True, False], ids=["in reserve", "comes then"])
async def test_the_next_one_gets_all_in_order(
    broker: BrokerHouse, name: str, held: Held, goes: Callable[[AmqpClient], Any], *, waits: bool
) -> None:
    """Nobody has seen them: they are not redelivered, and nothing that came later is in front of them."""
    former, later, publisher = await broker.connect(0), await broker.connect(0), await broker.connect(1)
    arguments = {"x-single-active-consumer": True} if waits else {}
    await former.declare(name, arguments=arguments)
    consume = commands.Basic.Consume(queue=name, consumer_tag="t")
    await former.call(1, consume, commands.Basic.ConsumeOk)
    if waits:
        await later.call(1, consume, commands.Basic.ConsumeOk)
    queue = queue_of(broker, name)
    held.hold()
    publisher.publish(b"a", name)
    publisher.publish(b"b", name)
    await until(lambda: len(queue.unsettled) == 2)
    await goes(former)
    await until(lambda: len(queue.consumers) == waits)
    if not waits:
        later.send(1, consume)
        await until(lambda: len(queue.consumers) == 1)
    publisher.publish(b"c", name)
    publisher.publish(b"d", name)
    await until(lambda: len(queue.unsettled) + queue.ready_count == 4)
    held.go_on()
    bodies = await later.bodies(4)
    assert bodies == [b"a", b"b", b"c", b"d"]
    assert not any(message.method.redelivered for message in later.messages())


async def test_a_client_that_cancels(
    broker: BrokerHouse, name: str, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has what came before cancel-ok, and keeps it; the next one need not wait for that."""
    monkeypatch.setattr(on_the_way, "_SECONDS", 3600.0)
    former, later, publisher = await broker.connect(0), await broker.connect(0), await broker.connect(1)
    await former.declare(name)
    consume = commands.Basic.Consume(queue=name, consumer_tag="t")
    await former.call(1, consume, commands.Basic.ConsumeOk)
    queue = queue_of(broker, name)
    held.hold()
    publisher.publish(b"a", name)
    await until(lambda: len(queue.unsettled) == 1)
    former.send(1, commands.Basic.Cancel("t"))
    await until(lambda: len(queue.consumers) == 0)
    later.send(1, consume)
    publisher.publish(b"b", name)
    await until(lambda: len(queue.consumers) == 1)
    held.go_on()
    assert await former.bodies(1) == [b"a"]
    assert await later.bodies(1) == [b"b"]


async def test_what_its_client_had_no_room_for(broker: BrokerHouse, name: str, held: Held) -> None:
    """It is given back before the gateway says how far it has read, also when that has something else to say."""
    former, later, publisher = await broker.connect(0), await broker.connect(1), await broker.connect(1)
    await former.declare(name)
    consume = commands.Basic.Consume(queue=name, consumer_tag="t")
    await former.call(1, consume, commands.Basic.ConsumeOk)
    await former.call(1, commands.Channel.Flow(False), commands.Channel.FlowOk)
    queue = queue_of(broker, name)
    publisher.publish(b"a", name)
    publisher.publish(b"b", name)
    await until(lambda: _parked(broker) == 2)
    held.hold()
    former.send(1, commands.Basic.Cancel("t"))
    await until(lambda: len(queue.consumers) == 0)
    await later.call(1, consume, commands.Basic.ConsumeOk)
    publisher.publish(b"c", name)
    publisher.publish(b"d", name)
    await until(lambda: queue.ready_count == 2)
    held.go_on(busy=True)
    bodies = await later.bodies(4)
    assert bodies == [b"a", b"b", b"c", b"d"]
    assert not any(message.method.redelivered for message in later.messages())
