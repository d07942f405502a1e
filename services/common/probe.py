"""The health check of a container: `python -I -m services.common.probe [HOST:PORT]` exits 0 when the service is ready.

It is started every few seconds in every container, so it is one request of the gRPC health protocol (grpc.health.v1)
written out as bytes: importing grpc takes five times as long as all of this, and would be most of what an idle stack
uses. The frames are those of RFC 9113, section 4.1, the header fields those of RFC 7541, section 6.2.2.
"""

from __future__ import annotations

import socket
import struct
import sys

DEFAULT = "127.0.0.1:7000"
SECONDS = 2.0

_DATA, _HEADERS, _SETTINGS, _GOAWAY = 0, 1, 4, 7
_END_STREAM, _END_HEADERS = 1, 4
_FRAME_HEAD = 9  # bytes
# :method POST and :scheme http are in the static table; the others are literals that the server must not index.
_FIELDS = (
    b"\x83\x86\x04\x1c/grpc.health.v1.Health/Check\x01\x09localhost\x0f\x10\x10application/grpc\x00\x02te\x08trailers"
)
_NO_MESSAGE = bytes(5)  # a gRPC message of length 0: the health of the server as a whole
_SERVING = b"\0\0\0\0\2\x08\1"  # a message of two bytes: field 1 is 1


def is_serving(host: str, port: int, seconds: float = SECONDS) -> bool:
    """Whether the server says that it is ready; raises OSError, such as TimeoutError, when it does not answer."""
    with socket.create_connection((host, port), seconds) as connection:
        connection.sendall(_request())
        received = b""
        while data := connection.recv(4096):
            received += data
            answer, received = _answer(received)
            if answer is not None:
                return answer == _SERVING
    return False


def main(arguments: list[str]) -> int:
    """The exit status for the address in `arguments`, or for the default address in a container."""
    host, _, port = (arguments[0] if arguments else DEFAULT).rpartition(":")
    try:
        return 0 if is_serving(host, int(port)) else 1
    except OSError as error:
        sys.stderr.write(f"no answer from {host}:{port}: {error}\n")
        return 1


def _request() -> bytes:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    headers = _frame(_HEADERS, _END_HEADERS, 1, _FIELDS)
    return preface + _frame(_SETTINGS, 0, 0, b"") + headers + _frame(_DATA, _END_STREAM, 1, _NO_MESSAGE)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def _answer(received: bytes) -> tuple[bytes | None, bytes]:
    """The message of the reply, empty when it ends without one, None while it is incomplete; and the unread rest."""
    while len(received) >= _FRAME_HEAD:
        end = _FRAME_HEAD + int.from_bytes(received[:3], "big")
        if len(received) < end:
            break
        kind, flags = received[3], received[4]
        if kind == _DATA:
            return received[_FRAME_HEAD:end], b""
        if kind == _GOAWAY or (kind == _HEADERS and flags & _END_STREAM):
            return b"", b""
        received = received[end:]
    return None, received


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
