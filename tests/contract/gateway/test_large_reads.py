"""Clients that send large messages are read much at a time: what they send comes, and what is wrong ends them alone."""

from __future__ import annotations

import pytest
from pamqp import commands

from tests.contract.gateway.test_settling import ready
from tests.support.amqp_client import AmqpClient
from tests.support.amqp_playbook import content, written
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

_FRAME = (128 << 10) - 8  # octets of a body in a frame, as clients agree to by default
_BODIES = {size: [bytes((number,)) * size for number in range(40)] for size in (64 << 10, 1_000_000)}


def _publishes(name: str, bodies: list[bytes]) -> bytes:
    return b"".join(content(1, body, routing_key=name, frame_size=_FRAME) for body in bodies)


def _is_read_much(broker: BrokerHouse) -> bool:
    return any(each.reads_much for gateway in broker.gateways for each in gateway._listener.connections)


@pytest.mark.parametrize("size", _BODIES)
async def test_large_messages_come_in_order(broker: BrokerHouse, name: str, size: int) -> None:
    """Confirmed, and to a consumer at the other gateway; small ones behind them as well."""
    client, consumer = await broker.connect(), await broker.connect(1)
    await client.declare(name)
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    await consumer.consume(name, no_ack=True)
    client.writer.write(_publishes(name, _BODIES[size]))
    await client.confirmed(40, seconds=60)
    assert _is_read_much(broker)
    client.publish(b"small", name)
    assert await consumer.bodies(41, seconds=60) == [*_BODIES[size], b"small"]


async def _closed(client: AmqpClient) -> int:
    close = await client.expect(commands.Connection.Close, seconds=60)
    assert isinstance(close, commands.Connection.Close)
    return close.reply_code


@pytest.mark.parametrize("size", _BODIES)
@pytest.mark.parametrize("reply_code", [501, 505])
async def test_what_is_wrong_in_the_midst_of_it(broker: BrokerHouse, name: str, size: int, reply_code: int) -> None:
    """Sections 4.2.3, 4.2.6.2: a wrong end octet, a body longer than announced. What came before is published, nothing
    behind it is; the client hears why, however much it has sent meanwhile.
    """
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    before = _publishes(name, _BODIES[size][:20])
    wrong = {501: before[:-1] + b"\0", 505: before + written(1, b"x")}[reply_code]
    client.writer.write(wrong + _publishes(name, _BODIES[size]))
    assert await _closed(client) == reply_code
    wanted = {501: 19, 505: 20}[reply_code]
    while await ready(other, name) < wanted:  # what came before is still under way when the close is written
        pass
    assert await ready(other, name) == wanted


async def test_a_socket_torn_in_the_midst_of_it(broker: BrokerHouse, name: str) -> None:
    """What came whole is published, and of the rest nothing is left at the gateway."""
    client, other = await broker.connect(), await broker.connect()
    await client.declare(name)
    client.writer.write(_publishes(name, _BODIES[1_000_000][:20])[:-5000])
    await client.writer.drain()
    client.writer.close()
    while await ready(other, name) < 19:
        pass
    await until(lambda: not any(gateway._listener.incoming.total for gateway in broker.gateways))
    assert await ready(other, name) == 19
