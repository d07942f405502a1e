"""Peers that behave as they should not: what they begin with, from an address of their own, on the event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError
from benchmarks.wire import NO_TABLE, long, method, refusal, short

if TYPE_CHECKING:
    from benchmarks.wire import Address

HEADER = b"AMQP\0\0\x09\x01"
SMALL_BUFFER = 16 << 10  # bytes: what waits should wait at the broker, not in the kernel


@dataclass(frozen=True, slots=True)
class Login:
    """How a client signs in."""

    user: str
    password: str
    mechanism: str = "PLAIN"

    def response(self) -> bytes:
        if self.mechanism == "PLAIN":
            return b"\0" + self.user.encode() + b"\0" + self.password.encode()
        fields = (("LOGIN", self.user), ("PASSWORD", self.password))
        return b"".join(short(name) + b"S" + long(value.encode()) for name, value in fields)

    def start_ok(self) -> bytes:
        answer = short(self.mechanism) + long(self.response()) + short("en_US")
        return method(0, 10, 11, NO_TABLE + answer)


def address_number(number: int) -> str:
    """One of the addresses of this machine from which peers come; none is the good client's."""
    return f"127.0.{1 + number // 250 % 250}.{1 + number % 250}"


async def connected(address: Address, source: str, receive_buffer: int = 0) -> socket.socket:
    """A socket that does not block, from `source`."""
    made = socket.socket()
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(made, (address.host, address.port))
    except BaseException:
        made.close()
        raise
    return made


async def opened(made: socket.socket, login: Login, channels: int = 1) -> None:
    """Signs in, and opens channels 1 to `channels`; raises BenchmarkError when it is refused."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(made, HEADER)
    await _frame(made)
    await loop.sock_sendall(made, login.start_ok())
    tune = (await _frame(made))[11:-1]
    channel_max, frame_max, _ = struct.unpack(">HIH", tune)
    await loop.sock_sendall(made, method(0, 10, 31, struct.pack(">HIH", channel_max, frame_max, 0)))
    await loop.sock_sendall(made, method(0, 10, 40, short("/") + b"\0\0"))
    await _frame(made)
    for channel in range(1, channels + 1):
        await loop.sock_sendall(made, method(channel, 20, 10, b"\0"))
        await _frame(made)


async def refused(address: Address, source: str, login: Login) -> None:
    """Tries to sign in, and returns when it was refused; raises BenchmarkError when it was let in."""
    made = None
    try:
        made = await connected(address, source)
        await opened(made, login)
    except (BenchmarkError, OSError):
        return
    finally:
        if made is not None:
            made.close()
    raise BenchmarkError(f"{login.user} signed in with a wrong password")


async def _frame(made: socket.socket) -> bytes:
    head = await _exactly(made, 7)
    whole = head + await _exactly(made, int.from_bytes(head[3:], "big") + 1)
    if said := refusal(whole):
        raise BenchmarkError(said)
    return whole


async def _exactly(made: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        data = await asyncio.get_running_loop().sock_recv(made, size - len(received))
        if not data:
            raise BenchmarkError("the broker closed the connection")
        received += data
    return received
