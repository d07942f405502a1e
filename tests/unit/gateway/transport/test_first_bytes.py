"""Any first bytes of a peer, and any bytes of a WebSocket, are recognised or refused; nothing breaks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, Request

from services.common import plugins
from services.common.config import Settings
from services.gateway.transport.tls import is_too_long
from services.gateway.transport.websocket import WebSocket

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"
KINDS = {name: plugins.load("transports", name)(Settings()) for name in plugins.names("transports")}
OPENINGS = {b"AMQP\0\0\x09\x01": "", b"GET / HTTP/1.1": "websocket", HELLO: "tls"}

REQUEST = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: amqp\r\n"
)
HEADERS = (b"Connection", b"Sec-WebSocket-Protocol", b"Sec-WebSocket-Extensions")
SPOILT = b"Host: x\r\n%s: \xff".__mod__


class Carrier:
    """A socket that keeps what is written to it."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0


class Heard(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


def opened() -> tuple[WebSocket, Any, Heard, WSConnection]:
    """A WebSocket after its handshake, what it writes to, its listener, and its client."""
    carrier: Any = Carrier()
    heard = Heard()
    websocket = WebSocket(carrier, heard, ["*"], lambda _: None)
    client = WSConnection(ConnectionType.CLIENT)
    websocket.data_received(client.send(Request("localhost", "/", subprotocols=["amqp"])))
    client.receive_data(carrier.written)
    list(client.events())
    return websocket, carrier, heard, client


def test_what_peers_begin_with() -> None:
    """One byte more or less does not matter: it is told as soon as it can be, and stays so."""
    for data, opening in OPENINGS.items():
        for name, kind in KINDS.items():
            told = [kind.begins(data[:size]) for size in range(1, len(data) + 1)]
            known = [each for each in told if each is not None]
            assert set(known) == {name == opening}
            assert told[-len(known) :] == known


@given(st.binary(min_size=len(HELLO)))
def test_anything_is_told(data: bytes) -> None:
    """Nine bytes are always enough."""
    told = [kind.begins(data) for kind in KINDS.values()]
    assert None not in told
    assert told.count(True) <= 1


@pytest.mark.parametrize(
    ("hello", "told"),
    [
        (HELLO, False),
        (b"\x16\x03\x01\x40\x00\x01\x00\x40\x00", False),
        (b"\x16\x03\x01\x40\x00\x01\x00\x40\x01", True),
        (b"\x16\x03\x01\x40\x00\x01\x02\x00\x00", True),
        (b"\x16\x03\x01\x00\x03\x01\x02\x00", True),  # the rest of its size in another record
        (b"\x16\x03\xff\xff\xff", False),  # which OpenSSL refuses
        (b"\x16\x03\x01\x00\x10garbage", False),  # as this one
    ],
)
def test_how_long_a_hello_is(hello: bytes, told: bool) -> None:
    """It is told by its first bytes, however they come, before anything is kept of it."""
    told_by = [is_too_long(hello[:size]) for size in range(len(hello) + 1)]
    assert told_by[-1] == told
    assert {each for each in told_by if each is not None} == {told}


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8))
def test_anything_as_a_request(pieces: list[bytes]) -> None:
    """Is answered with a status and closed, or waited for."""
    carrier: Any = Carrier()
    websocket = WebSocket(carrier, Heard(), ["*"], lambda _: None)
    for piece in pieces:
        websocket.data_received(piece)
    assert carrier.closed == carrier.written.startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize("spoilt", [b"Host: \xff", b"Host: xn--\x80", b"Host: xn--a", *map(SPOILT, HEADERS)])
def test_headers_that_are_no_text(spoilt: bytes) -> None:
    """Are refused as a request that is none: nothing is raised into the loop, which would write pages about it."""
    carrier: Any = Carrier()
    said: list[str] = []
    WebSocket(carrier, Heard(), ["*"], said.append).data_received(REQUEST + spoilt + b"\r\n\r\n")
    assert carrier.closed
    assert carrier.written.startswith(b"HTTP/1.1 400 ")
    assert said == ["a header is not in ASCII"]


@pytest.mark.parametrize("line", [b"X:" + b" " * 5000 + b"\0", b"X: " + b"x" * 20_000])
def test_heads_that_take_long_to_parse(line: bytes) -> None:
    """Are refused with words, before they are parsed, and what comes after them is not looked at."""
    carrier: Any = Carrier()
    said: list[str] = []
    websocket = WebSocket(carrier, Heard(), ["*"], said.append)
    for _ in range(2):
        websocket.data_received(REQUEST + line + b"\r\n\r\n")
    assert carrier.closed
    assert carrier.written.startswith(b"HTTP/1.1 431 ")
    assert carrier.written.endswith(f"{said[0]}\n".encode())
    assert len(said) == 1


def test_a_long_origin() -> None:
    """Is not repeated at any length, neither in the log nor in the answer."""
    carrier: Any = Carrier()
    said: list[str] = []
    websocket = WebSocket(carrier, Heard(), ["https://shop.example"], said.append)
    websocket.data_received(REQUEST + b"Host: x\r\nOrigin: https://" + b"x" * 12_000 + b"\r\n\r\n")
    assert carrier.written.startswith(b"HTTP/1.1 403 ")
    assert max(len(said[0]), len(carrier.written)) < 500


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8))
def test_anything_as_frames(pieces: list[bytes]) -> None:
    """Is taken, or the connection is closed."""
    websocket, _, _, _ = opened()
    for piece in pieces:
        websocket.data_received(piece)


@given(st.lists(st.binary(max_size=2000), max_size=6), st.integers(1, 700))
def test_what_is_sent_is_heard(bodies: list[bytes], size: int) -> None:
    """In order and once, however the frames are cut by messages, and messages by reads."""
    websocket, carrier, heard, client = opened()
    sent = b"".join(client.send(BytesMessage(body, message_finished=last)) for body in bodies for last in (False, True))
    for first in range(0, len(sent), size):
        websocket.data_received(sent[first : first + size])
    assert heard.data == b"".join(body * 2 for body in bodies)
    assert not carrier.closed


async def test_very_many_frames() -> None:
    """Are heard in many turns of the loop, in which others are served: one read of them would take half a second."""
    websocket, carrier, heard, client = opened()
    bodies = [bytes([number % 251]) for number in range(20_000)]
    websocket.data_received(b"".join(client.send(BytesMessage(body)) for body in bodies))
    assert 0 < len(heard.data) < 1000
    assert not carrier.reading
    websocket.pause_reading()
    held = len(heard.data)
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(heard.data) == held
    websocket.resume_reading()
    async with asyncio.timeout(10):
        while not carrier.reading:
            before = len(heard.data)
            await asyncio.sleep(0)
            assert len(heard.data) - before < 1000
    assert heard.data == b"".join(bodies)
    websocket.data_received(client.send(BytesMessage(b"more")))
    assert heard.data.endswith(b"more")
