"""Any bad input at the port: its sender gets the specification's reply or a closed connection; others are served."""

from __future__ import annotations

import os
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from tests.support.interop_pika import connected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.interop_address import BrokerAddress

SECONDS = 20
PROTOCOL_HEADER = b"AMQP\0\0\x09\x01"
START_OK = (
    b"\0\x0a\0\x0b" + struct.pack(">I", 0) + b"\x05PLAIN" + struct.pack(">I", 12) + b"\0guest\0guest" + b"\x05en_US"
)


@pytest.fixture(autouse=True)
def still_serves(broker: BrokerAddress) -> Iterator[None]:
    """After every test, and with what it left behind, a well-behaved client is served."""
    yield
    with connected(broker) as connection:
        assert connection.channel().queue_declare("", exclusive=True).method.queue


@pytest.fixture
def plain(broker: BrokerAddress) -> Iterator[socket.socket]:
    """A TCP connection on which nothing is sent yet."""
    with socket.create_connection((broker.host, broker.port), SECONDS) as opened:
        yield opened


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def read_to_end(opened: socket.socket) -> bytes:
    """All that comes until the peer closes, which it must do within the time limit."""
    received = b""
    try:
        while data := opened.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def opened_connection(plain: socket.socket) -> socket.socket:
    """Goes through the handshake, and opens channel 1."""
    plain.sendall(PROTOCOL_HEADER)
    read_exactly_one(plain)
    plain.sendall(frame(1, 0, START_OK))
    tune = read_exactly_one(plain)
    plain.sendall(frame(1, 0, b"\0\x0a\0\x1f" + tune[4:10] + b"\0\0") + frame(1, 0, b"\0\x0a\0\x28\x01/\0\0"))
    assert read_exactly_one(plain)[:4] == b"\0\x0a\0\x29"
    plain.sendall(frame(1, 1, b"\0\x14\0\x0a\0"))
    assert read_exactly_one(plain)[:4] == b"\0\x14\0\x0b"
    return plain


def read_exactly_one(opened: socket.socket) -> bytes:
    """The payload of the next frame, without reading further."""
    head = _exactly(opened, 7)
    size = struct.unpack(">BHI", head)[2]
    return _exactly(opened, size + 1)[:-1]


def _exactly(opened: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = opened.recv(count - len(data))
        assert more, "closed too early"
        data += more
    return data


def close_code(received: bytes) -> int | None:
    """The reply code of the connection.close in what was received."""
    at = received.find(b"\0\x0a\0\x32")
    return struct.unpack_from(">H", received, at + 4)[0] if at >= 0 else None


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",  # what begins with GET may become a WebSocket
        b"AMQP\0\0\x09\x07",
        b"AMQP\x01\x07\x00\x00",
        b"\xff" * 4096,
        b"\0" * 8,
        b"\r\n\r\n\r\n\r\n",
    ],
    ids=["http", "unknown version", "unknown protocol", "garbage", "zeros", "newlines"],
)
def test_anything_but_a_known_header(plain: socket.socket, sent: bytes) -> None:
    """Section 2.2.4: a wrong protocol header is answered with the right one, and the connection closed."""
    plain.sendall(sent)
    received = read_to_end(plain)
    assert received in {b"", PROTOCOL_HEADER}


@pytest.mark.parametrize(
    "sent", [b"", b"A", b"AMQP\0\0\x09", PROTOCOL_HEADER, PROTOCOL_HEADER + frame(1, 0, START_OK)[:20]]
)
def test_clients_that_go_away_in_the_middle(plain: socket.socket, sent: bytes) -> None:
    """A client may vanish at any point of the handshake."""
    plain.sendall(sent)
    plain.close()


def test_reset_in_the_middle_of_a_message(plain: socket.socket) -> None:
    """A connection that is reset inside a frame is gone, and nothing else is."""
    opened = opened_connection(plain)
    opened.sendall(frame(1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0") + b"\x02\0\x01\0\0")
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    opened.close()


BAD_FRAMES = {
    "frame end": (b"\x01\0\0\0\0\0\x04\0\x0a\0\x28\xff", {501}),
    "frame type": (frame(9, 0, b"\0\0\0\0"), {501}),
    "oversized": (b"\x01\0\x01\x7f\xff\xff\xff", {501}),
    "channel not open": (frame(1, 77, b"\0\x3c\0\x0a\0\0\0\0\0\0\0"), {504}),
    "unknown class": (frame(1, 1, b"\0\xff\0\x0a"), {503, 540}),
    "unknown method": (frame(1, 1, b"\0\x3c\0\xff"), {503, 540}),
    "body without method": (frame(3, 1, b"body"), {505}),
    "header without method": (frame(2, 1, struct.pack(">HHQH", 60, 0, 5, 0)), {505}),
    "method inside content": (
        frame(1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0") + frame(1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0"),
        {505},
    ),
    "header of another class": (
        frame(1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0") + frame(2, 1, struct.pack(">HHQH", 50, 0, 5, 0)),
        {501, 505},
    ),
    "more body than announced": (
        frame(1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0")
        + frame(2, 1, struct.pack(">HHQH", 60, 0, 2, 0))
        + frame(3, 1, b"too much"),
        {501, 505},
    ),
    "truncated arguments": (frame(1, 1, b"\0\x32\0\x0a\0\0\x20short"), {501, 502}),
    "bad field table": (frame(1, 1, b"\0\x32\0\x0a\0\0\x01q\0\0\0\0\x06\x01kZ\0\0\0"), {501, 502}),
    "table longer than its frame": (frame(1, 1, b"\0\x32\0\x0a\0\0\x01q\0\x7f\xff\xff\xff"), {501, 502}),
    "headers that are no table": (
        frame(1, 1, b"\0\x3c\0\x28\0\0\0\x01q\0")
        + frame(2, 1, struct.pack(">HHQHI", 60, 0, 1, 0x2000, 6) + b"\x01kZ\0\0\0")
        + frame(3, 1, b"x"),
        {502, 541},
    ),
    "channel opened twice": (frame(1, 1, b"\0\x14\0\x0a\0"), {504}),
    "start-ok again": (frame(1, 0, START_OK), {503, 504, 540}),
}

ONLY_HOPLINE = {"unknown class", "unknown method", "more body than announced", "bad field table"}
"""RabbitMQ 3.10 resets the connection without a reason, or waits for more."""

OF_ANY_BROKER = [bad for bad in BAD_FRAMES if bad not in ONLY_HOPLINE]


@pytest.mark.parametrize("bad", OF_ANY_BROKER if "HOPLINE_TEST_AMQP" in os.environ else BAD_FRAMES)
def test_bad_frames_close_the_connection(plain: socket.socket, bad: str) -> None:
    """A frame that cannot be is answered by connection.close with the specification's code, then the end."""
    sent, codes = BAD_FRAMES[bad]
    opened = opened_connection(plain)
    opened.sendall(sent)
    payload = read_exactly_one(opened)
    assert payload[:4] == b"\0\x0a\0\x32", payload
    assert struct.unpack_from(">H", payload, 4)[0] in codes, payload
    opened.sendall(frame(1, 0, b"\0\x0a\0\x33"))
    assert read_to_end(opened) == b""


def test_method_before_login(plain: socket.socket) -> None:
    """Without a login nothing is possible: the connection ends, with or without a reason."""
    plain.sendall(PROTOCOL_HEADER)
    read_exactly_one(plain)
    plain.sendall(frame(1, 0, b"\0\x0a\0\x28\x01/\0\0"))
    assert close_code(read_to_end(plain)) in {None, 501, 503, 504, 530, 540}


def test_unknown_mechanism(plain: socket.socket) -> None:
    """A SASL mechanism that is not offered ends the connection."""
    plain.sendall(PROTOCOL_HEADER)
    assert b"PLAIN" in read_exactly_one(plain)
    plain.sendall(frame(1, 0, START_OK.replace(b"\x05PLAIN", b"\x05MAGIC")))
    assert close_code(read_to_end(plain)) in {None, 403, 503, 504, 530}
