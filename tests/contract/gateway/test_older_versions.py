"""A client of AMQP 0-8 or 0-9 at a whole broker, beside those of 0-9-1."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.broker_house import BrokerHouse
from tests.support.raw_amqp import method, short

_LOGIN = b"\0guest\0guest"


class _Old:
    """Sends methods, and reads frames one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """The payload of the next frame."""
        head = await self._reader.readexactly(7)
        return (await self._reader.readexactly(int.from_bytes(head[3:7]) + 1))[:-1]

    async def asks(self, data: bytes) -> bytes:
        self._writer.write(data)
        return await self.read()


@pytest.mark.parametrize("header", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x00\x09"])
async def test_a_message_of_an_older_client(broker: BrokerHouse, header: bytes, name: str) -> None:
    """It signs in, has a ticket, publishes and gets, as others do beside it."""
    new = await broker.connect()
    await new.declare(name)
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.ports[0])
    old = _Old(reader, writer)
    await old.asks(header)
    start_ok = bytes(4) + short("PLAIN") + len(_LOGIN).to_bytes(4) + _LOGIN + short("en_US")
    tune = await old.asks(method(10, 11, start_ok, channel=0))
    opening = method(10, 31, tune[4:], channel=0) + method(10, 40, short("/") + b"\0\0", channel=0)
    assert (await old.asks(opening))[:4] == b"\x00\x0a\x00\x29"
    assert (await old.asks(method(20, 10, b"\0")))[:4] == b"\x00\x14\x00\x0b"
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
    writer.close()
    await writer.wait_closed()
