"""All that messages carry counts, not their bodies alone."""

from __future__ import annotations

from pamqp import commands

from services.gateway.sessions.consumer import WINDOW_BYTES
from tests.contract.gateway.test_settling import ready
from tests.contract.gateway.test_transactions import many_queues, transactional
from tests.support.broker_house import BrokerHouse

_HEADERS = {"h": "h" * 120_000}
_SOCKETS = 12 << 20  # what loopback sockets and the reader's own buffer may hold at most


async def test_large_headers_reach_their_consumer(broker: BrokerHouse, name: str) -> None:
    """Messages of a byte each with 300 MB of headers in all come, in order, to a consumer without prefetch."""
    client, count = await broker.connect(), 2300
    await client.declare(name)
    for number in range(count):
        client.publish(b"x", name, headers={**_HEADERS, "n": number})
        await client.writer.drain()
    await client.consume(name, no_ack=True)
    await client.bodies(count, seconds=120)
    assert [message.properties.headers["n"] for message in client.messages()] == list(range(count))


async def test_headers_are_credit(broker: BrokerHouse, name: str) -> None:
    """Bytes sent to a consumer that does not read are bounded, also of messages with large headers and any body."""
    stuck, publisher, count = await broker.connect(), await broker.connect(), 400
    await publisher.declare(name)
    for number in range(count):
        publisher.publish(b"x", name, headers={**_HEADERS, "n": number})
        await publisher.writer.drain()
    assert await ready(publisher, name) == count
    await stuck.consume(name, no_ack=True)
    stuck.stop_reading()
    remaining = await ready(publisher, name)
    assert (count - remaining) * 120_000 < WINDOW_BYTES + _SOCKETS
    stuck.read_on()
    await stuck.bodies(count, seconds=60)


async def test_a_large_transaction(broker: BrokerHouse, name: str) -> None:
    """A transaction of 40 MB over queues of both processes is committed whole."""
    names = await many_queues(broker, name)
    client, other = await transactional(broker), await broker.connect(1)
    for number in range(40):
        client.publish(bytes(1 << 20), names[number % 8], delivery_mode=2)
        await client.writer.drain()
    await client.call(1, commands.Tx.Commit(), commands.Tx.CommitOk, seconds=60)
    assert [await ready(other, each) for each in names] == [5] * 8
