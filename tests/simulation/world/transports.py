"""Transports and servers as asyncio's, over the in-memory network, for protocols that take bytes."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from tests.simulation.world.addresses import Network
from tests.simulation.world.loop import Loop
from tests.simulation.world.network import Connection, Link, Reset
from tests.simulation.world.processes import PROCESS, Process

_HIGH = 64 << 10
_PAUSE = 0.002  # seconds at most between pieces of what came together


class _Taken:
    """Sent back: so many bytes were read."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


class _End:
    """Sent when the writing side has closed."""


class FakeSocket:
    """What protocols do with the socket under a transport."""

    def setsockopt(self, *_options: object) -> None:
        """As if."""

    def getsockname(self) -> tuple[str, int]:
        return "0.0.0.0", 0


class SimTransport(asyncio.Transport):
    """One end of a connection of bytes."""

    def __init__(self, network: Network, process: Process, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer, "sockname": (process.host.address, 1), "socket": FakeSocket()})
        self.process = process
        self.connection: Connection = None  # type: ignore[assignment]  # set as soon as both ends are there
        self._network = network
        self._loop: Loop = network.loop
        self._protocol: Any = None
        self._unread: list[bytes] = []  # arrived, and not given to the protocol
        self._unsent = bytearray()
        self._untaken = 0  # sent, and not known to be read
        self._window = network.shape.window
        self._owed = 0  # read, and not told yet
        self._high, self._low = _HIGH, _HIGH // 4
        self._paused = False  # the protocol was asked to write no more
        self._reading = True
        self._closing = self._lost = False
        self._ending = False  # the peer has written all

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """The protocol is told of the connection, then of what came meanwhile."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._give()

    # -------------------------------------------------------------- asyncio.Transport

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol  # type: ignore[no-any-return]

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        if self._unread or self._ending:
            self._loop.soon(self.process, self._give)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _HIGH if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        if self._closing or not data:
            return
        if self._unsent:
            self._unsent += data
        else:
            room = self._window - self._untaken
            if len(data) > room:
                self._unsent += memoryview(data)[max(room, 0) :]
                data = memoryview(data)[: max(room, 0)]
            if data:
                self._send(bytes(data))
        if len(self._unsent) > self._high and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def writelines(self, chunks: Iterable[Any]) -> None:
        self.write(b"".join(chunks))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._unsent:
                self._finish()

    def abort(self) -> None:
        self._unsent.clear()
        if not self._lost:
            self._closing = True
            self.connection.send(self, Reset)
            self._loop.soon(self.process, self._lose, None)

    # -------------------------------------------------------------- the network says

    def arrived(self, item: Any) -> None:
        if self._lost:
            if item is not Reset and not isinstance(item, _Taken):
                self.connection.send(self, Reset)  # this end is gone
        elif isinstance(item, bytes):
            self._loop.note(self.process.number, zlib.crc32(item))
            self._arrive(item)
        elif isinstance(item, _Taken):
            self._untaken -= item.count
            if self._unsent:
                self._drain()
        elif item is _End:
            self._ending = True
            self._give()
        else:
            self.broken(ConnectionResetError(104, "connection reset by peer"))

    def broken(self, failure: Exception) -> None:
        if not self._lost:
            self._closing = True
            self._lose(failure)

    # -------------------------------------------------------------- reading

    def _arrive(self, data: bytes) -> None:
        if len(data) > 1 and self._network.random.random() < self._network.shape.splits:
            at = 1 + int(self._network.random.random() * (len(data) - 1))
            self._unread += (data[:at], data[at:])
            self._loop.after(self._network.random.random() * _PAUSE, self.process, self._give)
            self._give_one()
        else:
            self._unread.append(data)
            self._give()

    def _give(self) -> None:
        while self._unread and self._may_give():
            self._give_one()
        if self._ending and not self._unread and self._may_give():
            self._ending = False
            if not self._protocol.eof_received():
                self.close()

    def _may_give(self) -> bool:
        return self._protocol is not None and self._reading and not self._lost

    def _give_one(self) -> None:
        if not self._may_give():
            return
        data = self._unread[0]
        try:
            rest = self._hand_over(data)
        except Exception as failure:  # noqa: BLE001 - as asyncio's transports do
            self._loop.call_exception_handler({"message": "a protocol failed", "exception": failure})
            self.abort()
            return
        if rest:
            self._unread[0] = rest
        else:
            del self._unread[0]
        self._owed += len(data) - len(rest)
        if self._owed * 4 >= self._window and not self._lost:
            self.connection.send(self, _Taken(self._owed))
            self._owed = 0

    def _hand_over(self, data: bytes) -> bytes:
        """Gives what is left."""
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            protocol.data_received(data)
            return b""
        while data and self._reading and not self._lost:
            buffer = protocol.get_buffer(len(data))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]  # type: ignore[index]
            protocol.buffer_updated(count)
            data = data[count:]
        return data if not self._lost else b""

    # -------------------------------------------------------------- writing

    def _send(self, data: bytes) -> None:
        self._untaken += len(data)
        self.connection.send(self, data)

    def _drain(self) -> None:
        room = self._window - self._untaken
        if room > 0:
            self._send(bytes(self._unsent[:room]))
            del self._unsent[:room]
        if self._paused and len(self._unsent) <= self._low:
            self._paused = False
            self._protocol.resume_writing()
        if self._closing and not self._unsent and not self._lost:
            self._finish()

    def _finish(self) -> None:
        self.connection.send(self, _End)
        self._loop.soon(self.process, self._lose, None)

    def _lose(self, failure: Exception | None) -> None:
        if self._lost:
            return
        self._lost = True
        self.connection.ended(self)
        self.process.on_death.pop(self.die, None)
        if self._protocol is not None:
            self._protocol.connection_lost(failure)

    def die(self) -> None:
        """Its process is gone."""
        self._lost = self._closing = True
        self.connection.died(self, self._network.random, self._network.unheard(self.process))


class SimServer(asyncio.AbstractServer):
    """Accepts connections for one protocol factory."""

    def __init__(self, network: Network, process: Process, factory: Callable[[], Any], port: int) -> None:
        self.process = process
        self._network = network
        self._factory = factory
        self._port = port
        self.sockets: tuple[object, ...] = (FakeSocket(),)
        network.listen(port, self)

    def close(self) -> None:
        self.sockets = ()
        self._network.close(self._port, self)

    def is_serving(self) -> bool:
        return bool(self.sockets)

    async def wait_closed(self) -> None:
        """Returns at once: connections are ended by their owners."""

    def accept(self, transport: SimTransport) -> None:
        """A connection has come."""
        transport.begin(self._factory())


def pair(network: Network, link: Link, client: Process, accepting: Any, port: int) -> SimTransport:
    """Both ends of a new connection to the listener on `port`; gives the client's, whose protocol is to begin."""
    server: Process = accepting.process
    near = SimTransport(network, client, (server.host.address, port))
    far = SimTransport(network, server, (client.host.address, 40000))
    near.connection = far.connection = Connection(network.loop, link, (near, far))
    for end in (near, far):
        end.process.on_death[end.die] = None
    if server.dead:
        far.die()
    network.loop.soon(server, accepting.accept, far)
    return near


class Sockets:
    """What the loop asks for."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[SimTransport, Any]:
        """As loop.create_connection."""
        link, accepting = await self._network.reach(host, port)
        transport, protocol = pair(self._network, link, PROCESS.get(), accepting, port), factory()
        transport.begin(protocol)
        return transport, protocol

    def serve(self, factory: Callable[[], Any], port: int) -> SimServer:
        """As loop.create_server. Raises OSError when the port is taken."""
        return SimServer(self._network, PROCESS.get(), factory, port)
