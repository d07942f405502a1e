"""mgmt's own client of a gateway: where it looks for one, and what it says where there is none."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from pika import frame, spec

from services.common.config import Settings
from services.common.errors import AccessRefused, BrokerError, Unavailable
from services.mgmt.by_hand.client import Login, channel
from services.mgmt.by_hand.gateway_host import reachable
from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("gateway", "listens", "host"),
    [
        ("gateway:7000", "", "gateway"),
        ("[::1]:7000", "", "::1"),
        ("", "", "127.0.0.1"),
        ("", "0.0.0.0", "127.0.0.1"),
        ("unix:/run/gateway.sock", "10.0.0.7", "10.0.0.7"),
    ],
)
def test_where(gateway: str, listens: str, host: str) -> None:
    """Where its gRPC is, else on this machine, where it listens."""
    settings = Settings(gateway_address=gateway, amqp_host=listens)
    assert reachable(settings) == host


async def test_no_gateway() -> None:
    """Is reported at once, without the credentials."""
    settings = Settings(amqp_host="127.0.0.1", amqp_port=free_port())
    with pytest.raises(Unavailable, match="no gateway answers") as raised:
        async with channel(settings, Login("anna", "hunter2", "127.0.0.1"), "/"):
            pass
    assert "hunter2" not in str(raised.value) + repr(Login("anna", "hunter2", "127.0.0.1"))


async def _closes(code: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A gateway that lets the user in, and then not into the virtual host."""
    for told in (spec.Connection.Start(), spec.Connection.Tune(2047, 131072, 0)):
        await reader.read(1000)
        writer.write(frame.Method(0, told).marshal())
    while b"\0\x0a\0\x28" not in await reader.read(1000):  # connection.open
        pass
    writer.write(frame.Method(0, spec.Connection.Close(code, "user 'anna': \"2\" is reached", 0, 0)).marshal())
    await reader.read(1000)
    writer.close()


@pytest.mark.parametrize(("code", "kind"), [(530, AccessRefused), (320, Unavailable)])
async def test_not_let_in(code: int, kind: type[BrokerError], caplog: pytest.LogCaptureFixture) -> None:
    """It is said why, in the gateway's words: it is there, and answers. Nothing is written of it."""
    server = await asyncio.start_server(partial(_closes, code), "127.0.0.1", 0)
    settings = Settings(amqp_host="127.0.0.1", amqp_port=server.sockets[0].getsockname()[1])
    with pytest.raises(kind, match="user 'anna': \"2\" is reached"):
        async with channel(settings, Login("anna", "hunter2", "127.0.0.1"), "/"):
            pass
    server.close()
    assert not caplog.records
