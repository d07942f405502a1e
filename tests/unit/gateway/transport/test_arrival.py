"""What may come before a protocol: any kinds of transport, in any order, and what a port wants."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.common.few_lines import FewLines
from services.gateway.transport.arrival import Arrival, Offer

NOBODY: Any = ()


class Line:
    """A kind of the test's: a line with its name, and from then on the socket as it is."""

    on = True
    needs = ""

    def __init__(self, name: bytes, *, secure: bool = False) -> None:
        self._line = name + b"\n"
        self.secure = secure

    def begins(self, data: bytes) -> bool | None:
        if data.startswith(self._line):
            return True
        return None if self._line.startswith(data) else False

    def take(self, arrival: Arrival) -> None:
        rest = arrival.data[len(self._line) :]
        arrival.look_again(arrival.transport)
        arrival.data_received(rest)


class Socket:
    def __init__(self) -> None:
        self.protocol: Any = None
        self.closed = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol


class Heard:
    """In place of a connection."""

    def __init__(self) -> None:
        self.listener = SimpleNamespace(few=FewLines())
        self.peer = self.peer_host = "127.0.0.1"
        self.data = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def speak_over(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def cut_off(self) -> None:
        self.transport.closed = True


async def heard(offer: Offer, *said: bytes) -> tuple[Heard, Socket]:
    connection: Any = Heard()
    socket: Any = Socket()
    arrival = Arrival(connection, offer)
    socket.protocol = arrival
    arrival.connection_made(socket)
    for data in said:
        socket.protocol.data_received(data)
    return connection, socket


ONE, TWO = Line(b"one"), Line(b"two", secure=True)


@pytest.mark.parametrize("said", [b"one\ntwo\nAMQP", b"two\none\nAMQP", b"two\nAMQP", b"one\nAMQP", b"AMQP"])
@pytest.mark.parametrize("size", [1, 3, 100])
async def test_kinds_in_any_order(said: bytes, size: int) -> None:
    """Each transport that a peer begins with has its turn, in pieces of any size; what follows is the protocol's."""
    pieces = [said[first : first + size] for first in range(0, len(said), size)]
    connection, _ = await heard(Offer(NOBODY, [ONE, TWO]), *pieces)
    assert connection.data == b"AMQP"


async def test_a_kind_once() -> None:
    """What looks like a transport that was used already belongs to the protocol, which may refuse it."""
    connection, _ = await heard(Offer(NOBODY, [ONE, TWO]), b"one\none\n")
    assert connection.data == b"one\n"


@pytest.mark.parametrize(("said", "welcome"), [(b"two\none\nAMQP", True), (b"one\ntwo\nAMQP", False), (b"AMQP", False)])
async def test_secure_ones_only(said: bytes, welcome: bool) -> None:
    """Where nothing else is wanted, nothing is heard before one is there; the log says why."""
    offer = Offer(NOBODY, [ONE, TWO], unsecured=False)
    with capture_logs() as logged:
        connection, socket = await heard(offer, said)
    assert (connection.data == b"AMQP", socket.closed) == (welcome, not welcome)
    assert [line["event"] for line in logged] == ([] if welcome else ["a client that does not speak TLS is closed"])


def test_nothing_in_between() -> None:
    """Where nothing may come before a protocol, nothing is looked for."""
    assert not Offer(NOBODY, [])
    assert Offer(NOBODY, [ONE])
    assert Offer(NOBODY, [], unsecured=False)
