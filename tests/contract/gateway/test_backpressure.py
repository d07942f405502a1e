"""The socket decides over the backlog, and queues over what is read (design, section 3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest_asyncio
from pamqp import commands
from pamqp.heartbeat import Heartbeat

from services.gateway.connections.connection import Connection
from services.gateway.connections.heartbeat import Heartbeat as Beats
from services.gateway.protocols.amqp_1_0.performatives import Disposition, Flow, Transfer
from services.gateway.protocols.amqp_1_0.states import Accepted
from services.gateway.sessions.consumer import WINDOW_BYTES
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import data
from tests.support.amqp_client import AmqpClient
from tests.support.amqp_playbook import content
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

_SOCKETS = 12 << 20  # what loopback sockets and the reader's own buffer may hold at most


@pytest_asyncio.fixture(loop_scope="session")
async def small(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker whose queue process has 4 MB for messages."""
    house = BrokerHouse(tmp_path, gateways=1, queues=1, queue_memory=4 << 20)
    await house.start()
    yield house
    await house.stop()


async def test_a_consumer_that_does_not_read_stops_only_itself(broker: BrokerHouse, name: str) -> None:
    """Beside a stuck consumer of the same gateway another one goes on; what was sent to the stuck one is bounded."""
    size, count = 16 << 10, 4000  # 64 MB
    stuck, reader, publisher = [await broker.connect() for _ in range(3)]
    for queue in (name, name + "-2"):
        await publisher.declare(queue)
    await stuck.consume(name, no_ack=True)
    await reader.consume(name + "-2", no_ack=True)
    stuck.stop_reading()
    for _ in range(count):
        publisher.publish(b"x" * size, name)
        await publisher.writer.drain()
    for _ in range(500):
        publisher.publish(b"y" * size, name + "-2")
    await reader.bodies(500)
    remaining = await ready(publisher, name)
    assert (count - remaining) * size < WINDOW_BYTES + _SOCKETS
    stuck.read_on()
    await stuck.bodies(count, seconds=30)


async def test_sessions_share_a_socket_fairly(broker: BrokerHouse, name: str) -> None:
    """Two channels of a connection that reads slowly get about as much each, though one began long before."""
    client = await broker.connect(channels=2)
    publisher = await broker.connect()
    for queue in (name, name + "-2"):
        await publisher.declare(queue)
        for _ in range(1500):
            publisher.publish(b"x" * 16384, queue)
            await publisher.writer.drain()
    await client.consume(name, "a", channel=1, no_ack=True)
    await client.consume(name + "-2", "b", channel=2, no_ack=True)
    client.stop_reading()
    await asyncio.sleep(0.3)
    client.read_on()
    await client.until(lambda: len(client.messages()) >= 2000, 30)
    counts = [len(client.messages(channel=channel)) for channel in (1, 2)]
    assert min(counts) > 500, counts
    await client.until(lambda: len(client.messages()) == 3000, 30)


async def test_publishers_are_blocked_while_memory_is_short(small: BrokerHouse) -> None:
    """connection.blocked comes when a queue process is full, no more is read, and unblocked when consumers drained."""
    publisher, consumer = await small.connect(), await small.connect()
    await consumer.declare("q")
    sending = asyncio.get_running_loop().create_task(_send(publisher, 2500))
    await publisher.until(lambda: publisher.of(commands.Connection.Blocked))
    await asyncio.sleep(0.5)
    held = await ready(consumer, "q")
    await asyncio.sleep(0.3)
    assert await ready(consumer, "q") == held < 2000
    await consumer.consume("q", no_ack=True)
    await consumer.bodies(2500, seconds=30)
    await sending
    await publisher.until(lambda: publisher.of(commands.Connection.Unblocked))


async def _send(client: AmqpClient, count: int, queue: str = "q") -> None:
    for _ in range(count):
        client.publish(b"x" * 8192, queue)
        await client.writer.drain()


async def test_only_publishers_to_full_queues_wait(small: BrokerHouse) -> None:
    """While one queue has all the memory of its process, messages go through another one of the same process."""
    stuck, other, consumer = [await small.connect() for _ in range(3)]
    for queue in ("q", "other"):
        await consumer.declare(queue)
    await consumer.consume("other", no_ack=True)
    sending = asyncio.get_running_loop().create_task(_send(stuck, 2500))
    await stuck.until(lambda: stuck.of(commands.Connection.Blocked))
    for times in range(1, 11):
        await _send(other, 100, "other")
        await consumer.bodies(100 * times, seconds=30)
    assert not other.of(commands.Connection.Blocked)
    assert not stuck.of(commands.Connection.Unblocked)
    await consumer.call(1, commands.Queue.Purge(queue="q"), commands.Queue.PurgeOk)
    await stuck.until(lambda: stuck.of(commands.Connection.Unblocked))
    sending.cancel()


async def test_an_application_with_both_ends_on_one_connection(small: BrokerHouse) -> None:
    """Of AMQP 1.0: it is held back by its link's credit, and takes messages meanwhile, which make room for its own."""
    publisher, app = await small.connect(), Client()
    await publisher.declare("q")
    await app.open(small.ports[0], "guest", "guest", "/")
    assert await app.sends_to("q") == ""
    sending = asyncio.get_running_loop().create_task(_send(publisher, 1000))
    await publisher.until(lambda: publisher.of(commands.Connection.Blocked))
    app.transfers(data(b"x" * 8192))
    said = [await app.next(Flow, Disposition) for _ in range(2)]
    assert [each.link_credit for each in said if isinstance(each, Flow)] == [0]
    assert [each.state for each in said if isinstance(each, Disposition)] == [Accepted()]
    assert await app.receives_from("q") == ""
    app.takes(2000)
    taken, credit = 0, 0
    while taken < 1000 or not credit:
        came = await app.next(Transfer, Flow)
        if isinstance(came, Flow):
            credit = came.link_credit
        else:
            app.settles(taken)
            taken += 1
    await sending
    await publisher.until(lambda: publisher.of(commands.Connection.Unblocked))
    await app.close()


async def test_gets_of_many_channels_wait_as_those_of_one(broker: BrokerHouse, name: str) -> None:
    """Channels that get at once take no more from the queue than the socket holds, and a few messages."""
    size, channels = 1 << 20, 80
    client, publisher = await broker.connect(channels=channels), await broker.connect()
    await publisher.declare(name)
    for _ in range(channels):
        publisher.publish(b"x" * size, name)
        await publisher.writer.drain()
    client.stop_reading()
    for channel in range(1, channels + 1):
        client.send(channel, commands.Basic.Get(queue=name, no_ack=True))
    await until(lambda: any(not each.writable for each in broker.gateways[0]._listener._connections))
    await asyncio.sleep(0.3)
    assert (channels - await ready(publisher, name)) * size < 30 << 20
    client.read_on()
    await client.until(lambda: len(client.messages(commands.Basic.GetOk)) == channels, 30)


async def test_gets_wait_for_a_peer_that_does_not_read(broker: BrokerHouse, name: str) -> None:
    """Pipelined basic.get without reading takes no more from the queue than the socket can hold."""
    client = await broker.connect()
    await client.declare(name)
    for _ in range(1000):
        client.publish(b"x" * 50_000, name)
        await client.writer.drain()
    assert await ready(client, name) == 1000
    client.stop_reading()
    for _ in range(1000):
        client.send(1, commands.Basic.Get(queue=name, no_ack=True))
    await asyncio.sleep(1)
    assert await ready(await broker.connect(), name) > 1000 - _SOCKETS // 50_000
    client.read_on()
    await client.until(lambda: len(client.messages(commands.Basic.GetOk)) == 1000, 30)


class Hands:
    """The clock of one connection in the gateway, in place of the loop's, moved by hand."""

    def __init__(self, connection: Connection) -> None:
        self.now = 0.0
        self._due: list[Callable[[], None]] = []
        self._loop = connection.loop
        for timer in connection.timers:
            timer.cancel()
        connection.timers.clear()
        connection.loop = cast("asyncio.AbstractEventLoop", self)
        connection.last.begin(0.0)
        Beats(connection).beat()

    def time(self) -> float:
        return self.now

    def call_later(self, _delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        self._due.append(callback)
        return self._loop.call_later(3600, lambda: None)

    def move(self, now: float) -> None:
        """To a time at which every client that waits has waited long enough."""
        self.now = now
        due, self._due = self._due, []
        for callback in due:
            callback()


async def test_a_silent_client_is_cut_and_an_idle_one_hears_beats(small: BrokerHouse) -> None:
    """With heartbeat 60 beats come every 30 seconds, and a client silent for over 120 is cut off. Section 4.2.7."""
    client = await small.connect(heartbeat=60)
    [connection] = small.gateways[0]._listener._connections
    clock = Hands(connection)
    for beats, (early, due) in enumerate([(29.9, 30), (59.9, 60), (89.9, 90), (119.9, 120)], 1):
        clock.move(early)
        clock.move(due)
        await client.until(lambda beats=beats: client.of(Heartbeat)[beats - 1 :])
    await client.declare("q")  # everything before its answer has come
    assert len(client.of(Heartbeat)) == 4
    clock.move(120 + 120)
    await client.declare("q")
    clock.move(120 + 240.1)
    await client.until(lambda: client.closed, 60)


async def test_a_held_client_is_not_cut_for_silence(small: BrokerHouse) -> None:
    """While a connection is not read, what it may have sent is not missed."""
    publisher, consumer = await small.connect(heartbeat=1), await small.connect()
    await consumer.declare("q")
    sending = asyncio.get_running_loop().create_task(_send(publisher, 2500))
    await publisher.until(lambda: publisher.of(commands.Connection.Blocked))
    await asyncio.sleep(3.5)
    assert not publisher.closed
    await consumer.consume("q", no_ack=True)
    await consumer.bodies(2500, seconds=30)
    await sending


async def test_many_large_messages_at_once(small: BrokerHouse) -> None:
    """Twenty connections that send a megabyte each through a gateway with room for two: all of them are taken."""
    clients, reader = [await small.connect() for _ in range(20)], await small.connect()
    await reader.declare("q")
    await reader.consume("q", no_ack=True)
    incoming = small.gateways[0]._listener.incoming
    incoming.limit = 2 << 20
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, incoming.total)

    whole = content(1, bytes(1 << 20), routing_key="q")
    for end in range(1, 17):
        for client in clients:
            client.writer.write(whole[len(whole) * (end - 1) // 16 : len(whole) * end // 16])
        await asyncio.sleep(0.01)
        look()
    await reader.until(lambda: look() or len(reader.messages()) == 20, 30)
    assert 2 << 20 <= most < 8 << 20
    await until(lambda: incoming.total == 0)


async def test_a_message_that_is_given_up_takes_no_memory(small: BrokerHouse) -> None:
    """What came of a content is forgotten with its channel, its connection, or when it is complete."""
    client = await small.connect()
    incoming = small.gateways[0]._listener.incoming
    await client.declare("q")
    half = content(1, bytes(1 << 20), routing_key="q")[: 1 << 19]
    client.writer.write(half)
    await until(lambda: incoming.total > 1 << 18)
    client.writer.transport.abort()
    await until(lambda: incoming.total == 0)
