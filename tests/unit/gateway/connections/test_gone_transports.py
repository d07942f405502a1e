"""What stood between a socket and a connection is given back with it: cycles would stay until all is collected."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from services.common.config import Settings
from services.gateway.transport.arrival import Arrival, Offer
from services.gateway.transport.certificates import Certificates, Files
from services.gateway.transport.tls import Tls
from services.gateway.transport.web import Web
from tests.support.amqp_playbook import HEADER
from tests.support.certificates import Authority
from tests.support.programs import until
from tests.unit.gateway.connections.test_gone import Listener

_UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)


@pytest.fixture
def _nothing_is_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def offer(authority: Authority) -> Offer:
    tls = Tls(Settings())
    tls.certificates = Certificates(Files((authority.sign("server", ["localhost"]),)))
    web = Web(SimpleNamespace(websocket_origins=("*",)))  # type: ignore[arg-type]
    nobody: Any = ()
    return Offer(nobody, [tls, web])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def come_and_go(offer: Offer, said: bytes, *, waits: bool, **ssl: Any) -> None:
    """Peers that say so much, hear something or do not wait for it, and go; returns when nothing of them is left."""
    listener: Any = Listener()
    listener.settings.tls_user = "common-name"
    others = len(_kept())  # of earlier tests
    server = await asyncio.get_running_loop().create_server(lambda: Arrival(listener.accept(), offer), "127.0.0.1", 0)
    async with server:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), **ssl)
            writer.write(said)
            if waits:
                await reader.read(100)
            writer.close()
        await until(lambda: listener.gone == 3)
        await until(lambda: not listener.made and len(_kept()) <= others)


def _kept() -> list[str]:
    names = [type(each).__name__ for each in gc.get_objects()]
    return [name for name in names if name in ("Arrival", "WebSocket", "WSConnection", "Early")]


@pytest.mark.usefixtures("_nothing_is_collected")
@pytest.mark.parametrize("said", [b"", HEADER, _UPGRADE], ids=["nothing", "a header", "an upgrade"])
@pytest.mark.parametrize("secure", [False, True])
def test_peers_that_go(offer: Offer, authority: Authority, secure: bool, said: bytes) -> None:
    """Over TLS, WebSocket, or both."""
    ssl: dict[str, Any] = {"ssl": authority.client(), "server_hostname": "localhost"} if secure else {}
    uvloop.run(come_and_go(offer, said, waits=bool(said), **ssl))


@pytest.mark.usefixtures("_nothing_is_collected")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("hello", [b"\x16\x03\x01\x00\x20\x01\x00\x00\x1c" + b"x" * 28, b"\x16\x03\x01\x00\x20\x01"])
def test_hands_that_are_not_shaken(offer: Offer, hello: bytes, waits: bool) -> None:
    """What TLS refuses, and half a hello whose peer goes."""
    uvloop.run(come_and_go(offer, hello, waits=waits and len(hello) > 6))
