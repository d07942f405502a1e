"""The header of a balancer before a client's first byte: PROXY protocol version 2, which says where the client is.

As HAProxy specifies it (proxy-protocol.txt, section 2.2): signature, version and command, address family, length,
addresses, and extensions (TLV), which are ignored. Pure: bytes in, an address out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import ip_address

from services.common.errors import SyntaxFault

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LONGEST = 4096  # bytes behind the head; extensions are tens or hundreds

_HEAD = struct.Struct(">12sBBH")
_VERSION = 2
_LOCAL, _PROXY = 0, 1  # commands
_UNKNOWN = 0  # family and transport
_UNIX = 0x31
_ADDRESSES = {0x11: struct.Struct(">4s4sHH"), 0x21: struct.Struct(">16s16sHH")}  # TCP over IPv4, and over IPv6


@dataclass(frozen=True, slots=True)
class Origin:
    """`size` bytes of header; `host` is "" where the balancer speaks for itself, or does not know the address."""

    size: int
    host: str = ""
    port: int = 0


def read(data: bytes) -> Origin | None:
    """Reads the header at the beginning of `data`; None while it is not complete; raises SyntaxFault."""
    if not data.startswith(SIGNATURE[: len(data)]):
        raise SyntaxFault(f"no PROXY header of version 2: the peer began with {data[:8]!r}")
    if len(data) < _HEAD.size:
        return None
    _, version_and_command, family, length = _HEAD.unpack_from(data)
    version, command = version_and_command >> 4, version_and_command & 0xF
    if version != _VERSION or command not in (_LOCAL, _PROXY):
        raise SyntaxFault(f"a PROXY header of version {version} with command {command}")
    if length > LONGEST:
        raise SyntaxFault(f"a PROXY header of {length} bytes, more than {LONGEST}")
    if len(data) < _HEAD.size + length:
        return None
    whole = _HEAD.size + length
    return Origin(whole) if command == _LOCAL else _proxied(family, data[_HEAD.size : whole], whole)


def _proxied(family: int, rest: bytes, size: int) -> Origin:
    if family in (_UNKNOWN, _UNIX):
        return Origin(size)
    addresses = _ADDRESSES.get(family)
    if addresses is None:
        raise SyntaxFault(f"a PROXY header of family {family:#04x}")
    if len(rest) < addresses.size:
        raise SyntaxFault(f"a PROXY header of family {family:#04x} with {len(rest)} bytes of addresses")
    source, _, port, _ = addresses.unpack_from(rest)
    return Origin(size, str(ip_address(source)), port)
