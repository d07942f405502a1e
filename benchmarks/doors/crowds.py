"""Crowds: half-open peers, messages that are never finished, clients that never read."""

from __future__ import annotations

import asyncio
import itertools
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from benchmarks.doors.peer import HEADER, Login, address_number, connected, opened
from benchmarks.failure import BenchmarkError
from benchmarks.wire import BODY, NO_TABLE, frame, method, publication, short
from benchmarks.wire import HEADER as CONTENT_HEADER

if TYPE_CHECKING:
    import socket

    from benchmarks.wire import Address

_AT_ONCE = 100  # that connect at the same time
_ANNOUNCED = 16 << 20  # bytes of a body
_PIECE = bytes(100_000)
_LITTLE = 4 << 10  # bytes of a receive buffer
BIG = "big"  # the queue with big messages


class Crowd:
    """`size` peers of one kind, made anew when they are closed. Each comes from an address of some."""

    def __init__(self, address: Address, size: int, login: Login) -> None:
        self.address = address
        self.size = size
        self.login = login
        self.present = self.closed = 0
        self.said: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._all = asyncio.Event()
        self._numbers = itertools.count()
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def come(self, seconds: float) -> None:
        """Returns when all are there, or after so many seconds."""
        self._tasks = [asyncio.create_task(self._be(number)) for number in range(self.size)]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._all.wait()

    async def go(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _be(self, number: int) -> None:
        while True:
            made = None
            here = False
            try:
                async with self._gate:
                    made = await connected(self.address, address_number(number % 40), self.receive_buffer)
                    await self.begin(made)
                here = True
                self._came()
                await self.go_on(made)
            except (OSError, BenchmarkError) as failure:
                self.said[str(failure)[:120]] = self.said.get(str(failure)[:120], 0) + 1
                await asyncio.sleep(0.05)
            finally:
                self.present -= here
                self.closed += here
                if made is not None:
                    made.close()

    def _came(self) -> None:
        self.present += 1
        if self.present == self.size:
            self._all.set()

    receive_buffer = 0

    async def begin(self, made: socket.socket) -> None:
        """What it says first."""
        await opened(made, self.login)

    async def go_on(self, made: socket.socket) -> None:
        """What it does then; returns when it was closed."""
        while await asyncio.get_running_loop().sock_recv(made, 65536):
            pass


class HalfOpen(Crowd):
    """Connect, and say nothing, half a protocol header, or that and half of start-ok."""

    async def begin(self, made: socket.socket) -> None:
        half = self.login.start_ok()
        said = (b"", HEADER[:4], HEADER + half[: len(half) // 2])[next(self._numbers) % 3]
        if said:
            await asyncio.get_running_loop().sock_sendall(made, said)


class HalfOpenHttp(Crowd):
    """Connect over HTTP, and say nothing, or half of a head, or half of a body."""

    async def begin(self, made: socket.socket) -> None:
        head = b"POST /api/route HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n"
        said = (b"", head, head + b"\r\n" + bytes(1000))[next(self._numbers) % 3]
        if said:
            await asyncio.get_running_loop().sock_sendall(made, said)


class Unfinished(Crowd):
    """Announce 16 MiB, send half of it, and no more, on each of some channels."""

    channels = 1

    async def begin(self, made: socket.socket) -> None:
        await opened(made, self.login, self.channels)

    async def go_on(self, made: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for channel in range(1, self.channels + 1):
            publish = method(channel, 60, 40, b"\0\0" + short("") + short(BIG) + b"\0")
            head = frame(CONTENT_HEADER, channel, struct.pack(">HHQH", 60, 0, _ANNOUNCED, 0))
            await loop.sock_sendall(made, publish + head)
        for _ in range(_ANNOUNCED // 2 // len(_PIECE)):
            for channel in range(1, self.channels + 1):
                await loop.sock_sendall(made, frame(BODY, channel, _PIECE))
        await super().go_on(made)


class UnfinishedOnChannels(Unfinished):
    channels = 10


class UnreadAnswers(Crowd):
    """Ask for as much as is taken, and never read."""

    receive_buffer = _LITTLE
    again = method(1, 50, 10, b"\0\0" + short(BIG) + b"\1" + NO_TABLE) * 1000  # queue.declare, passive

    async def go_on(self, made: socket.socket) -> None:
        while True:
            await asyncio.get_running_loop().sock_sendall(made, self.again)


class UnreadReturns(UnreadAnswers):
    """Publish what comes back."""

    again = publication("", "nowhere", _PIECE, persistent=False, mandatory=True)


class UnreadDeliveries(Crowd):
    """Consume big messages."""

    receive_buffer = _LITTLE

    async def go_on(self, made: socket.socket) -> None:
        consume = method(1, 60, 20, b"\0\0" + short(BIG) + short("c") + b"\0" + NO_TABLE)
        await asyncio.get_running_loop().sock_sendall(made, consume)
        await asyncio.get_running_loop().create_future()
