"""What a connection had is given back when it is gone, not when the collector comes by: in a gateway it seldom does."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from services.common.few_lines import FewLines
from services.common.limits import Limits as Limited
from services.common.runtime import Tasks
from services.gateway.connections.connection import Connection
from services.gateway.connections.doors import Doors
from services.gateway.connections.former import Former
from services.gateway.connections.incoming import Incoming
from services.gateway.connections.limited import LimitedConnections
from services.gateway.connections.turns import Turns
from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.transport.outgoing import Outgoing
from tests.support.amqp_playbook import HEADER
from tests.support.programs import until

BEGINNINGS = {
    "nothing": b"",
    "half a header": HEADER[:4],
    "a header": HEADER,
    "no AMQP": b"GET / HTTP/1.1\r\n\r\n",
    "no frame after the header": HEADER + b"\xff" * 8,
}


class Listener:
    """As far as a connection goes that never signs in."""

    def __init__(self) -> None:
        self.made: weakref.WeakSet[Connection] = weakref.WeakSet()
        self.gone = 0
        self.tasks = Tasks()
        self.settings = SimpleNamespace(handshake_timeout=60, unread_timeout=60)
        self.broker = SimpleNamespace(flush_soon=Connection.flush)
        self.turns = Turns()
        self.doors = Doors(0, 1024)
        self.limited = LimitedConnections(Limited(), Former())
        self.few = FewLines()
        self.incoming = Incoming(1 << 20, 60)
        self.outgoing = Outgoing(1 << 20)

    def accept(self) -> Connection:
        connection = Connection(self, AmqpEngine(Amqp09Limits(), ["PLAIN"]), "1.1")  # type: ignore[arg-type]
        self.made.add(connection)
        return connection

    def forget(self, connection: Connection) -> None:
        self.gone += 1
        self.incoming.forget(connection)
        self.doors.leave(connection)


@pytest.fixture
def _nothing_is_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_nothing_is_collected")
@pytest.mark.parametrize("beginning", BEGINNINGS.values(), ids=BEGINNINGS)
async def test_peers_that_never_sign_in(beginning: bytes) -> None:
    """They connect, say so much, and go: nothing of them is left."""
    listener: Any = Listener()
    server = await asyncio.get_running_loop().create_server(listener.accept, "127.0.0.1", 0)
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(beginning)
        await until(lambda: [each for each in listener.made if not beginning or each.last.read])
        writer.close()
        await until(lambda: listener.gone)
        await until(lambda: not listener.made)
