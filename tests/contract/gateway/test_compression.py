"""Qpid's message compression at a whole broker."""

from __future__ import annotations

import gzip

import pytest
from pamqp import commands

from services.common.message import field_table
from services.gateway.protocols.amqp_0_9.compression import PROPERTY
from tests.support.broker_house import BrokerHouse
from tests.support.older_client import OlderClient
from tests.support.raw_amqp import method, short

TEXT = b"a message " * 20_000


async def _got(client: OlderClient, queue: str) -> tuple[bytes, bytes]:
    """What lies between flags and body, and the body."""
    got = await client.asks(method(60, 70, b"\x00\x01" + short(queue) + b"\x01"))
    assert got[:4] == b"\x00\x3c\x00\x47"
    head, body = await client.read(), b""
    while len(body) < int.from_bytes(head[4:12]):
        body += await client.read()
    return head[12:], body


@pytest.mark.parametrize("header", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x00\x09", b"AMQP\x00\x00\x09\x01"])
async def test_each_client_gets_what_it_understands(broker: BrokerHouse, header: bytes, name: str) -> None:
    """One publisher zips, another does not; of the consumers one does not understand it, and one says nothing."""
    publisher = await broker.connect()
    await publisher.declare(name)
    await publisher.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    zipped = gzip.compress(TEXT)
    understands = {"true": (None, None), "false": (TEXT, TEXT), None: (zipped, TEXT)}  # None: zipped by the broker
    for number, (said, bodies) in enumerate(understands.items(), 1):
        publisher.publish(zipped, name, content_encoding="gzip")
        publisher.publish(TEXT, name)
        await publisher.confirmed(2 * number)
        table = field_table.encode({PROPERTY: said} if said else {})
        async with OlderClient(broker.ports[1], header, table) as client:
            assert PROPERTY.encode() in client.server_properties
            for expected in bodies:
                head, body = await _got(client, name)
                assert (b"gzip" in head) is (expected is None or expected is zipped)
                assert (body == expected) if expected else (gzip.decompress(body) == TEXT)
