"""Closes a socket whose peer may still be sending, so that the peer can read what was written to it.

A kernel that closes a socket with input unread resets it, and a reset takes from the peer what it has not read yet:
close-ok, or the connection.close that says what was wrong. So only the writing half is closed, and what comes is read
and dropped until the peer ends too, for a while and up to a limit. A peer that reads slowly has the time that it takes.

The side that sent close first should end the stream first, so we give it a moment: clients take an end of stream right
behind close-ok for a failure (amqp091-go reports it to NotifyClose, and applications connect anew).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_SECONDS = 3.0
_MOMENT = 1.0
_BYTES = 64 << 20


class Draining(asyncio.Protocol):
    """Takes the place of a connection's protocol, which is told only of the socket's end."""

    def __init__(self, transport: asyncio.Transport, ended: Callable[[Exception | None], None]) -> None:
        self._transport = transport
        self._ended = ended
        self._room = _BYTES
        self._unwritten = transport.get_write_buffer_size()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, *, peer_first: bool = False) -> None:
        """Sends what was written, then the end of the stream; returns at once.

        With `peer_first` our end of the stream waits a moment for the peer's.
        """
        if self._transport.is_closing():
            return
        self._transport.set_protocol(self)
        if peer_first:
            self._transport.resume_reading()
            self._timer = asyncio.get_running_loop().call_later(_MOMENT, self._end)
        else:
            self._end()

    def _end(self) -> None:
        transport = self._transport
        self._look_later()
        if transport.is_closing():
            return  # the peer has ended, and still reads
        if transport.can_write_eof():
            self._half_close()
        else:
            # TLS has no half-close: uvloop sends close_notify, and drops what comes until the peer sends it too.
            transport.close()

    def _half_close(self) -> None:
        try:
            self._transport.write_eof()
            self._transport.resume_reading()
        except OSError:  # the peer has reset the socket: asyncio's own loop raises at once
            self._transport.abort()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._look)

    def _look(self) -> None:
        before, self._unwritten = self._unwritten, self._transport.get_write_buffer_size()
        if self._unwritten < before:
            self._look_later()  # the peer reads, or has just read the last of it
        else:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._room -= len(data)
        if self._room < 0:
            self._transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, failure: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        self._ended(failure)
