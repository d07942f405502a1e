"""A client of AMQP 0-8 or 0-9 at a whole broker, beside those of 0-9-1."""

from __future__ import annotations

import pytest

from tests.support.broker_house import BrokerHouse
from tests.support.older_client import OlderClient
from tests.support.raw_amqp import method, short


@pytest.mark.parametrize("header", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x00\x09"])
async def test_a_message_of_an_older_client(broker: BrokerHouse, header: bytes, name: str) -> None:
    """It signs in, has a ticket, publishes and gets, as others do beside it."""
    new = await broker.connect()
    await new.declare(name)
    async with OlderClient(broker.ports[0], header) as old:
        assert await old.asks(method(30, 10, short("/data") + b"\x1f")) == b"\x00\x1e\x00\x0b\x00\x01"
        content = b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00" + (3).to_bytes(8) + b"\0\0\xce"
        content += b"\x03\x00\x01\x00\x00\x00\x03old\xce"
        publish = method(60, 40, b"\x00\x01\x00" + short(name) + b"\0") + content
        got = await old.asks(publish + method(60, 70, b"\x00\x01" + short(name) + b"\x01"))
        assert got[:4] == b"\x00\x3c\x00\x47"
        assert (await old.read())[-2:] == b"\0\0"
        assert await old.read() == b"old"
        new.publish(b"new", name)
        await new.consume(name)
        assert await new.bodies(1) == [b"new"]
