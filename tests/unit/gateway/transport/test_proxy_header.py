"""PROXY protocol version 2, and other bytes in its place (proxy-protocol.txt, section 2.2)."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import SyntaxFault
from services.gateway.transport.proxy_header import LONGEST, SIGNATURE, Origin, read


def header(command: int, family: int, rest: bytes = b"", length: int | None = None) -> bytes:
    return SIGNATURE + struct.pack(">BBH", command, family, len(rest) if length is None else length) + rest


def addresses(source: str, port: int) -> bytes:
    packed = ip_address(source).packed
    return packed + bytes(len(packed)) + struct.pack(">HH", port, 5672)


IPV4 = header(0x21, 0x11, addresses("192.0.2.7", 50_000))
IPV6 = header(0x21, 0x21, addresses("2001:db8::7", 50_001))
_GOOD = [
    (IPV4, "192.0.2.7", 50_000),
    (IPV6, "2001:db8::7", 50_001),
    (header(0x21, 0x11, addresses("192.0.2.7", 1) + b"\x04\0\x05extra"), "192.0.2.7", 1),  # with an extension
    (header(0x20, 0x00), "", 0),  # LOCAL, a health check
    (header(0x20, 0x11, addresses("192.0.2.7", 1)), "", 0),  # LOCAL: addresses are to be ignored
    (header(0x21, 0x00), "", 0),  # UNSPEC
    (header(0x21, 0x00, b"whatever"), "", 0),
    (header(0x21, 0x31, bytes(216)), "", 0),  # unix sockets
]


@pytest.mark.parametrize(("data", "host", "port"), _GOOD)
def test_who_the_client_is(data: bytes, host: str, port: int) -> None:
    """The source address, none where the balancer speaks for itself; what comes behind the header is not touched."""
    assert read(data) == read(data + b"AMQP\0\0\x09\x01") == Origin(len(data), host, port)


@pytest.mark.parametrize(("data", "host", "port"), _GOOD)
def test_it_may_come_in_pieces(data: bytes, host: str, port: int) -> None:
    """Nothing is known before the header is whole."""
    assert [read(data[:end]) for end in range(len(data))] == [None] * len(data)


_BAD = {
    "AMQP itself": b"AMQP\0\0\x09\x01",
    "version 1": b"PROXY TCP4 192.0.2.7 192.0.2.1 50000 5672\r\n",
    "a wrong byte in the signature": SIGNATURE[:-1] + b"\r" + IPV4[12:],
    "version 3": header(0x31, 0x11, addresses("192.0.2.7", 1)),
    "an unknown command": header(0x22, 0x11, addresses("192.0.2.7", 1)),
    "UDP": header(0x21, 0x12, addresses("192.0.2.7", 1)),
    "an unknown family": header(0x21, 0x41, bytes(36)),
    "an unknown transport": header(0x21, 0x13, bytes(36)),
    "too few bytes for IPv4": header(0x21, 0x11, bytes(11)),
    "too few bytes for IPv6": header(0x21, 0x21, bytes(35)),
    "no bytes": header(0x21, 0x11),
    "too long": header(0x21, 0x11, length=LONGEST + 1),
    "as long as can be": header(0x21, 0x11, length=0xFFFF),
}


@pytest.mark.parametrize("data", _BAD.values(), ids=_BAD.keys())
def test_what_is_no_header_is_refused(data: bytes) -> None:
    """At once, however much would be to come."""
    with pytest.raises(SyntaxFault):
        read(data)


@given(st.one_of(st.binary(max_size=64), st.binary(max_size=64).map(lambda rest: SIGNATURE + rest)))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    """An origin within the bytes, a wait for more, or a fault that a log line can tell."""
    try:
        origin = read(data)
    except SyntaxFault:
        return
    if origin is None:
        assert len(data) < 16 + LONGEST
    else:
        assert 16 <= origin.size <= len(data)
        assert origin.host == "" or ip_address(origin.host)
