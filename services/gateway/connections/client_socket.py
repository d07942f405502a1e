"""The socket of one client's connection: whether it takes what is written, whether it is read, and how it is closed."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, cast

from services.gateway.connections.activity import Activity
from services.gateway.connections.large_reads import LargeReads
from services.gateway.connections.rest import Rest
from services.gateway.transport.draining import Draining
from services.gateway.transport.unread import Unread

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.connections.listener import Listener
    from services.gateway.protocols.engine import Engine


class ClientSocket(asyncio.Protocol):
    """What a connection owns of the transport. `writable`: it takes what is written; `lost`: it is gone."""

    # Seldom set, so on the class: see Connection.
    certified = ""  # the name in its certificate, where TLS has verified one
    closing = False  # its end is known, and in the log where it has to be
    _on_top = False  # of the socket is another transport, which reads it
    reads_much = False  # is read at a time
    _unread: Unread | None = None  # while it is not writable
    _drained: asyncio.Event | None = None  # while a coroutine waits in `drained`

    name: str
    peer: str
    peer_host: str
    engine: Engine
    loop: asyncio.AbstractEventLoop

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.writable, self.lost = True, False
        self._transport: asyncio.Transport | None = None
        self._holds: set[object] = set()  # why the socket is not read
        self.last, self.rest = Activity(), Rest(listener.turns)

    def speak_over(self, transport: asyncio.BaseTransport) -> None:
        """Uses this transport from now on: the socket, and later perhaps TLS on top of it."""
        self.listener.outgoing.forget(self._transport)
        if self._transport:
            self._on_top = True
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self.listener.outgoing.come(self._transport)

    def eof_received(self) -> bool:
        return False

    # -------------------------------------------------------------- writing

    def pause_writing(self) -> None:
        self.writable = False
        if self._transport and not self.lost:
            self.listener.outgoing.paused(self._transport)
            self._unread = Unread(self, self._transport, self.listener.settings.unread_timeout)

    def resume_writing(self) -> None:
        self.writable = True
        self._waits_no_more()
        self.release(self)
        self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Writes what there is, and what waited for the socket."""

    def _waits_no_more(self) -> None:
        drained, self._drained, unread, self._unread = self._drained, None, self._unread, None
        if drained:
            drained.set()
        if unread:
            unread.stop()

    async def drained(self) -> None:
        """Returns when the peer takes what is written to it, or is gone."""
        if not self.writable and not self.lost:
            self._drained = self._drained or asyncio.Event()
            await self._drained.wait()

    def write(self) -> None:
        """Writes what the engine has."""
        chunks = self.engine.data_to_send()
        if chunks and self._transport and not self._transport.is_closing():
            self.last.wrote = self.loop.time()
            self._transport.writelines(chunks)

    # -------------------------------------------------------------- reading, or not

    def hold(self, reason: object) -> None:
        """Reads the socket no further until the same reason is released."""
        if not self._holds and self._transport and not self.lost:
            self._transport.pause_reading()
        self._holds.add(reason)

    def release(self, reason: object) -> None:
        """Takes back a hold, if there is one."""
        if reason in self._holds:
            self._holds.discard(reason)
            if not self._holds and self._transport and not self.lost:
                self.last.read = self.loop.time()
                self._transport.resume_reading()
            elif self._holds == {self.rest}:
                self.go_on()

    def read_much(self, *, much: bool) -> None:
        """Reads much of the socket at a time, or little. To be called while it is held: the loop asks as it goes on."""
        if much is not self.reads_much and self._transport and not self._on_top:
            self.reads_much = much
            protocol = LargeReads(cast("Connection", self), self.listener.read_room) if much else self
            self._transport.set_protocol(cast("asyncio.Protocol", protocol))  # or a buffered one, as typeshed has not

    @abstractmethod
    def go_on(self) -> None:
        """Nothing but what was read, and waits, keeps it from being read: more of that may be carried out."""

    @property
    def held(self) -> bool:
        """Whether the socket is not read."""
        return bool(self._holds)

    def held_but(self, reason: object) -> bool:
        """Whether it is held for another reason than this one and the rest of a read."""
        return bool(self._holds - {reason, self.rest})

    # -------------------------------------------------------------- the end

    def part(self, *, peer_first: bool = False) -> None:
        """Everything has been written: ends the socket once the client has read it or has ended the stream."""
        if self._transport and not self.lost:
            self.lost = self.closing = True
            self._waits_no_more()
            if self.reads_much:
                self._transport.pause_reading()
                self.read_much(much=False)
            Draining(self._transport, self.connection_lost).begin(peer_first=peer_first)

    def cut_off(self) -> None:
        """Closes the socket without telling the client; the caller logs why."""
        self.closing = True
        self.abort()

    def abort(self) -> None:
        """Closes the socket without telling the client."""
        if self._transport:
            self._transport.abort()
