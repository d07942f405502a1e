"""Whoever reaches the port of the NATS server and has not the stack's token: how many, how long, what they may say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common import secret
from services.common.bus.server import command
from tests.support.nats_server import NatsServer
from tests.support.stack import HOST

Stranger = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def _of_a_stack() -> Iterator[None]:
    secret.use("of this stack alone")
    yield
    secret.use("")


async def _stranger(server: NatsServer) -> Stranger:
    return await asyncio.open_connection(HOST, int(server.address.rpartition(":")[2]))


async def _heard(stranger: Stranger) -> bytes:
    """All that it is told until it is closed."""
    reader, writer = stranger
    async with asyncio.timeout(60):
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


async def test_so_many_and_no_longer(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than there may be is refused; the others are closed, as they say nothing, and the stack is let in."""
    monkeypatch.setattr("services.common.bus.server._CONNECTIONS", 10)
    await server.start()
    strangers = await asyncio.gather(*(_stranger(server) for _ in range(200)))
    heard = await asyncio.gather(*map(_heard, strangers))
    assert any(b"maximum connections exceeded" in each for each in heard)
    assert any(b"Authentication Timeout" in each for each in heard)
    reader, writer = await _stranger(server)
    writer.write(b'CONNECT {"auth_token": "%s", "verbose": false}\r\nPING\r\n' % secret.nats_token().encode())
    assert b"PONG" in await asyncio.wait_for(reader.readuntil(b"PONG\r\n"), 60)
    writer.close()


@pytest.mark.parametrize(
    "said", [b"CONNECT {" + b" " * (1 << 20), b"PUB a 1000000\r\n", b"SUB > 1\r\n", b"\0" * 100_000]
)
async def test_what_it_says_is_not_kept(server: NatsServer, said: bytes) -> None:
    """Before the token neither a long line nor anything else is taken."""
    await server.start()
    reader, writer = await _stranger(server)
    writer.write(said)
    heard = await _heard((reader, writer))
    assert b"+OK" not in heard
    assert b"PONG" not in heard


def test_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process may open few, connections leave half of them to streams."""
    monkeypatch.setattr("services.common.bus.server.files", lambda: 256)
    command(tmp_path, HOST, 4222)
    assert "max_connections: 128\n" in (tmp_path / "auth.conf").read_text()
